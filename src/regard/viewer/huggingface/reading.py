"""Options for reading an output of transformers."""

from dataclasses import dataclass
from typing import Any

from regard.data.axis import Axis
from regard.viewer.huggingface.ids import placed
from regard.viewer.huggingface.pieces import covered
from regard.viewer.huggingface.stacks import Kept


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
        return placed(self.source, example, length, self.tokenizer, self.languages[0], "source")

    def target_axis(self, ids: list[int]) -> Any:
        """Tokens that were written."""
        return covered(ids, self.tokenizer, self.languages[1])
