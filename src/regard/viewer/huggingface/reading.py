"""Options for reading an output of transformers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.axis import Axis, Index
from regard.viewer.arrays import AXES
from regard.viewer.huggingface.ids import placed
from regard.viewer.huggingface.pieces import covered
from regard.viewer.huggingface.stacks import Kept
from regard.viewer.io.errors import TraceError

SENSED = ("pixel_values", "input_features", "input_values")
"""Inputs that are no tokens, as processors name them."""


@dataclass(frozen=True)
class Reading:
    """The arguments of `from_huggingface`; `languages` are those of source and target."""

    tokenizer: Any
    source: Any
    target: Any
    written: Any
    languages: tuple[str | None, str | None]
    candidates: int
    sums_to_one: bool

    def source_axis(self, example: tuple[int, int], length: int) -> tuple[Axis, Kept]:
        """Axis of one example, (number, of how many), and the mask of its positions without padding."""
        if isinstance(self.source, Mapping) and not isinstance(self.source, AXES) and "input_ids" not in self.source:
            return self._sensed(example, length)
        return placed(self.source, example, length, self.tokenizer, self.languages[0], "source")

    def patches_axis(self, example: tuple[int, int], length: int) -> tuple[Axis, Kept]:
        """The patches of the picture that one example was given."""
        if isinstance(self.source, Mapping) and "pixel_values" in self.source:
            return self._sensed(example, length, ("pixel_values",))
        return Index(length), list(range(length))

    def _sensed(self, example: tuple[int, int], length: int, kinds: tuple[str, ...] = SENSED) -> tuple[Axis, Kept]:
        """A picture or sound, as a processor prepared it."""
        from regard.viewer.record.external.axes import Reader
        from regard.viewer.record.external.runs import ModelRun

        inputs = {kind: self.source[kind] for kind in kinds if kind in self.source}
        if not inputs:
            raise TraceError(
                f"source: needs input_ids or {', '.join(SENSED)} of a tokenizer or a processor, got {', '.join(self.source)}"
            )
        inputs = {kind: value if isinstance(value, Tensor) else torch.as_tensor(value) for kind, value in inputs.items()}
        return Reader(ModelRun(passes=[inputs]), None, None, self.tokenizer).source(length, example)

    def target_axis(self, ids: list[int]) -> Any:
        """Tokens that were written."""
        return covered(ids, self.tokenizer, self.languages[1])
