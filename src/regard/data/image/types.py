"""Examples with an image, and batches of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.data.batch import Padded, map_tensors
from regard.data.image.batch import Images

Picture = Shaped[Tensor, "*frames channels height width"]
"""Bytes from 0 to 255, or floats from 0 to 1; a clip has frames first."""
TEXT_STEPS = 4
"""Steps in which padded lengths of texts about images double for CUDA graphs."""


class ImageExample(NamedTuple):
    """An image or a clip, with the target, labels, boxes or question that a task needs."""

    picture: Path | str | Tensor | Callable[[], Tensor]
    """A file, a tensor, or a function that renders the same image each time; those with an equal `same` share one image."""
    target: list[int] | None = None
    """Token ids, with EOS."""
    record: Any = None
    labels: list[int] | None = None
    boxes: Float[Tensor, "boxes 4"] | None = None
    """Centre x, centre y, width and height as shares of the image; `labels` has one number per box."""
    question: list[int] | None = None
    """Token ids, with EOS."""


class ImageBatch(NamedTuple):
    """Images, with whatever their examples have, and the records of the examples."""

    source: Images
    """One row per example; of clips one per frame, those of an example in sequence."""
    target: Padded | None = None
    records: tuple[Any, ...] = ()
    labels: Padded | None = None
    boxes: Float[Tensor, "batch boxes 4"] | None = None
    """Their mask is `labels.keep`."""
    question: Padded | None = None
    frames: Bool[Tensor, "batch frames"] | None = None
    """Mask of the frames of clips. A shorter clip has empty images at its end."""
    about: Int[Tensor, " questions"] | None = None
    """Row of `source` for each row of `question` and `labels`, where an image may have several questions."""

    def to(self, device: torch.device | str) -> "ImageBatch":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    @property
    def rows(self) -> int:
        """Number of examples."""
        return len(self.source.data if self.frames is None else self.frames)

    def select_rows(self, rows: Sequence[int]) -> "ImageBatch":
        """Batch of these examples, without the padding that none of them needs."""
        rows, frames, about = list(rows), self.frames, self.about
        if about is not None:
            return self._select_asked(rows, about)
        width = 1 if frames is None else frames.shape[1]
        sides = {name: getattr(self, name) for name in ("target", "labels", "question")}
        labels = None if self.labels is None else self.labels.select_rows(rows)
        return ImageBatch(
            self.source.select_rows([row * width + frame for row in rows for frame in range(width)]),
            records=tuple(self.records[row] for row in rows if self.records),
            boxes=None if self.boxes is None else self.boxes[rows, : None if labels is None else labels.data.shape[1]],
            frames=None if frames is None else frames[rows],
            **{name: None if side is None else side.select_rows(rows) for name, side in sides.items()},
        )

    def _select_asked(self, rows: list[int], about: Int[Tensor, " questions"]) -> "ImageBatch":
        """Batch of these images, with all of their questions."""
        questions = [number for row in rows for number in (about == row).nonzero()[:, 0].tolist()]
        sides = {name: getattr(self, name) for name in ("labels", "question")}
        return ImageBatch(
            self.source.select_rows(rows),
            records=tuple(self.records[number] for number in questions),
            about=torch.tensor([rows.index(int(about[number])) for number in questions], device=about.device),
            **{name: None if side is None else side.select_rows(questions) for name, side in sides.items()},
        )

    def round_shape(self) -> "ImageBatch":
        """The batch with more padding. Texts are rounded more coarsely, since each of many image sizes meets each length."""
        sides = {name: getattr(self, name) for name in ("target", "labels", "question")}
        rounded: dict[str, Any] = {
            name: None if side is None else side.round_shape(TEXT_STEPS) for name, side in sides.items()
        }
        return self._replace(source=self.source.round_shape(), **rounded)

    def unpack(self) -> "ImageBatch":
        """The batch itself: images are never packed."""
        return self
