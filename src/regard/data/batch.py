"""Batches: several sequences of different lengths in one tensor, and which parts of it are real."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from regard.data.vocabulary import BOS


class Padded(NamedTuple):
    """Sequences side by side, filled up to the longest; `keep` is True where there is something."""

    data: Shaped[Tensor, "batch time *rest"]
    keep: Bool[Tensor, "batch time"]

    def to(self, device: torch.device | str) -> "Padded":
        """The same on another device."""
        return Padded(self.data.to(device, non_blocking=True), self.keep.to(device, non_blocking=True))

    def picked(self, rows: Sequence[int]) -> "Padded":
        """These rows, without the columns that none of them needs."""
        keep = self.keep[list(rows)]
        needed = int(keep.any(0).nonzero().max()) + 1 if keep.any() else 1
        return Padded(self.data[list(rows), :needed], keep[:, :needed])


class Batch(NamedTuple):
    """Sources, targets where there are any, and the records that they were made from."""

    source: Padded
    target: Padded | None
    records: tuple[Any, ...] = ()

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device."""
        return Batch(self.source.to(device), None if self.target is None else self.target.to(device), self.records)

    @property
    def rows(self) -> int:
        """How many examples there are."""
        return len(self.source.data)

    def picked(self, rows: Sequence[int]) -> "Batch":
        """These rows, each side without the columns that none of them needs."""
        target = None if self.target is None else self.target.picked(rows)
        return Batch(self.source.picked(rows), target, tuple(self.records[row] for row in rows if self.records))


def pad(sequences: Sequence[Sequence[int]], filling: int = 0) -> Padded:
    """Rows of token numbers as one tensor."""
    longest = max((len(each) for each in sequences), default=0)
    data = torch.tensor([[*each, *[filling] * (longest - len(each))] for each in sequences], dtype=torch.long)
    lengths = torch.tensor([len(each) for each in sequences])
    return Padded(data.view(len(sequences), longest), torch.arange(longest)[None] < lengths[:, None])


def shifted(target: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """A decoder's input: the target one place to the right, with BOS in front."""
    return torch.cat((torch.full_like(target[:, :1], BOS), target[:, :-1]), dim=1)
