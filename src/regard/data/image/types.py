"""Examples with a picture, and batches of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.data.batch import Padded
from regard.data.image.batch import Images

Picture = Shaped[Tensor, "*frames channels height width"]
"""Bytes from 0 to 255, or floats from 0 to 1; of a clip, frame after frame."""


class ImageExample(NamedTuple):
    """A picture or a clip, with what a task wants to know of it or to be told beside it."""

    picture: Path | str | Tensor | Callable[[], Tensor]
    """A file, the picture itself, or what draws it, the same each time; what draws alike may have an equal `same`."""
    target: list[int] | None = None
    """Tokens, with EOS at their end."""
    record: Any = None
    labels: list[int] | None = None
    boxes: Float[Tensor, "boxes 4"] | None = None
    """As centre x, centre y, width and height in shares of the picture; `labels` has one number for each."""
    question: list[int] | None = None
    """Tokens, too."""


class ImageBatch(NamedTuple):
    """Pictures, what belongs to each of them where the examples have it, and the records that they were made from."""

    source: Images
    """One row for each example; of clips, one for each frame, those of an example one after the other."""
    target: Padded | None = None
    records: tuple[Any, ...] = ()
    labels: Padded | None = None
    boxes: Float[Tensor, "batch boxes 4"] | None = None
    """With `labels.keep` for their mask."""
    question: Padded | None = None
    frames: Bool[Tensor, "batch frames"] | None = None
    """Of clips: which frames there are. A shorter clip has empty pictures at its end."""
    about: Int[Tensor, " questions"] | None = None
    """Where a picture may have several questions: the row of `source` that each row of `question` and `labels` is about."""

    def to(self, device: torch.device | str) -> "ImageBatch":
        """The same on another device."""
        moved = {name: value.to(device) for name, value in self._asdict().items() if hasattr(value, "to")}
        return self._replace(**moved)

    @property
    def rows(self) -> int:
        """How many examples there are."""
        return len(self.source.data if self.frames is None else self.frames)

    def picked(self, rows: Sequence[int]) -> "ImageBatch":
        """These examples, without the filling that none of them needs."""
        rows, frames, about = list(rows), self.frames, self.about
        if about is not None:
            return self._asked(rows, about)
        of_each = range(1 if frames is None else frames.shape[1])
        sides = {name: getattr(self, name) for name in ("target", "labels", "question")}
        labels = None if self.labels is None else self.labels.picked(rows)
        return ImageBatch(
            self.source.picked([row * len(of_each) + frame for row in rows for frame in of_each]),
            records=tuple(self.records[row] for row in rows if self.records),
            boxes=None if self.boxes is None else self.boxes[rows, : None if labels is None else labels.data.shape[1]],
            frames=None if frames is None else frames[rows],
            **{name: None if side is None else side.picked(rows) for name, side in sides.items()},
        )

    def _asked(self, rows: list[int], about: Int[Tensor, " questions"]) -> "ImageBatch":
        """These pictures, with all of their questions."""
        chosen = [number for row in rows for number in (about == row).nonzero()[:, 0].tolist()]
        sides = {name: getattr(self, name) for name in ("labels", "question")}
        return ImageBatch(
            self.source.picked(rows),
            records=tuple(self.records[number] for number in chosen),
            about=torch.tensor([rows.index(int(about[number])) for number in chosen], device=about.device),
            **{name: None if side is None else side.picked(chosen) for name, side in sides.items()},
        )


class Part(NamedTuple):
    """A batch, and which examples are in it: what puts answers back into their order."""

    indices: list[int]
    batch: ImageBatch
