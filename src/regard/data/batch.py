"""Batches: several sequences of different lengths in one tensor, and which parts of it are real."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.nn import functional

from regard.data.special_tokens import BOS, PAD

Documents = Int[Tensor, "batch time"]
"""The number of the example at each place of packed rows, counted from 1 in each row; 0 where there is nothing."""


class Padded(NamedTuple):
    """Sequences side by side, filled up to the longest; `keep` is True where there is something."""

    data: Shaped[Tensor, "batch time *rest"]
    keep: Bool[Tensor, "batch time"]
    documents: Documents | None = None
    """Which of the examples that share a row is at each place; None: each has a row for itself."""

    def to(self, device: torch.device | str) -> "Padded":
        """The same on another device."""
        return self.each(lambda tensor: tensor.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> "Padded":
        """The same with every tensor changed."""
        return Padded(change(self.data), change(self.keep), None if self.documents is None else change(self.documents))

    def picked(self, rows: Sequence[int]) -> "Padded":
        """These rows, without the columns that none of them needs."""
        keep = self.keep[list(rows)]
        needed = int(keep.any(0).nonzero().max()) + 1 if keep.any() else 1
        return self.each(lambda tensor: tensor[list(rows), :needed])

    def apart(self) -> "Padded":
        """Examples that share a row, each in one of its own; where they have that already, this is itself."""
        if self.documents is None:
            return self
        rows = zip(self.data, self.documents, strict=True)
        return pad([row[of == number].tolist() for row, of in rows for number in of[of > 0].unique().tolist()], PAD)


class Batch(NamedTuple):
    """Sources, targets where there are any, and the records that they were made from: of each row one, or several in a tuple
    where examples share it."""

    source: Padded
    target: Padded | None
    records: tuple[Any, ...] = ()

    def to(self, device: torch.device | str) -> "Batch":
        """The same on another device."""
        return Batch(self.source.to(device), None if self.target is None else self.target.to(device), self.records)

    @property
    def rows(self) -> int:
        """How many rows there are: of examples, unless some share one."""
        return len(self.source.data)

    def picked(self, rows: Sequence[int]) -> "Batch":
        """These rows, each side without the columns that none of them needs."""
        target = None if self.target is None else self.target.picked(rows)
        return Batch(self.source.picked(rows), target, tuple(self.records[row] for row in rows if self.records))

    def apart(self) -> "Batch":
        """Examples that share a row, each in one of its own; where they have that already, this is itself."""
        if self.source.documents is None:
            return self
        records = tuple(record for row in self.records for record in row)
        return Batch(self.source.apart(), None if self.target is None else self.target.apart(), records)


def pad(sequences: Sequence[Sequence[int]], filling: int = 0) -> Padded:
    """Rows of token numbers as one tensor."""
    longest = max((len(each) for each in sequences), default=0)
    data = torch.tensor([[*each, *[filling] * (longest - len(each))] for each in sequences], dtype=torch.long)
    lengths = torch.tensor([len(each) for each in sequences])
    return Padded(data.view(len(sequences), longest), torch.arange(longest)[None] < lengths[:, None])


def shifted(target: Int[Tensor, "batch time"], documents: Documents | None = None) -> Int[Tensor, "batch time"]:
    """A decoder's input: the target one place to the right, with BOS in front of each example."""
    moved = torch.cat((torch.full_like(target[:, :1], BOS), target[:, :-1]), dim=1)
    return moved if documents is None else moved.masked_fill(begins(documents), BOS)


def begins(documents: Documents) -> Bool[Tensor, "batch time"]:
    """Where another example begins than stood before."""
    return functional.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)


def places(documents: Documents) -> Int[Tensor, "batch time"]:
    """How far each place is from the beginning of its example; 0 where there is nothing."""
    ruler = torch.arange(documents.shape[1], device=documents.device)
    first = ruler.where(begins(documents), 0).cummax(1).values
    return (ruler - first) * (documents > 0)
