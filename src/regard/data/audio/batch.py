"""Batches of features: frames of recordings padded to one tensor, and examples of recordings."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.data.batch import map_tensors, pad_numbers
from regard.data.bucketing import round_length

STEPS = 8
"""Steps in which padded lengths double for CUDA graphs."""


class Frames(NamedTuple):
    """Padded features; `keep` is True where there is a frame."""

    data: Float[Tensor, "batch time channels"]
    keep: Bool[Tensor, "batch time"]

    @property
    def lengths(self) -> list[int]:
        """Frames of each recording, which bound the length of what is said in it."""
        lengths: list[int] = self.keep.sum(1).tolist()
        return lengths

    def to(self, device: torch.device | str) -> "Frames":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    def select_rows(self, rows: Sequence[int]) -> "Frames":
        """Batch of these recordings, without the padding that none of them needs."""
        keep = self.keep[list(rows)]
        width = int(keep.sum(1).max())
        return Frames(self.data[list(rows), :width], keep[:, :width])

    def round_shape(self) -> "Frames":
        """The recordings with more padding, up to a rounded length."""
        padding = round_length(self.data.shape[1], STEPS) - self.data.shape[1]
        if not padding:
            return self
        return Frames(functional.pad(self.data, (0, 0, 0, padding)), functional.pad(self.keep, (0, padding), value=False))


def collate_frames(features: Sequence[Float[Tensor, "_frames channels"]]) -> Frames:
    """Features of recordings, padded with zeros."""
    padded = pad_numbers(features)
    return Frames(padded.data, padded.keep)


class AudioExample(NamedTuple):
    """A recording, its number of frames, and the token ids of its text with EOS."""

    sound: Any
    """A file of sound or of features (Path), synthetic sound (Synthesis), or an excerpt of either (Excerpt)."""
    frames: int
    target: list[int] | None = None
    record: Any = None


@runtime_checkable
class Synthesis(Protocol):
    """Synthetic sound, which is the same each time that it is called."""

    @property
    def rate(self) -> int:
        """Sampling rate in hertz."""

    @property
    def length(self) -> int:
        """Number of samples."""

    def __call__(self) -> Float[Tensor, " samples"]: ...
