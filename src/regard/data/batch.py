"""Batches: sequences of different lengths padded to one tensor, with the mask of what is not padding."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from regard.data.bucketing import round_length
from regard.data.special_tokens import BOS, NO_TOKEN, PAD
from regard.tree import leaves, map_tree

Documents = Int[Tensor, "batch time"]
"""Number of the example at each position of packed rows, counted from 1 in each row; 0 at padding."""
STEPS = 8
"""Steps in which padded lengths double for CUDA graphs."""


class Padded(NamedTuple):
    """Sequences padded to the longest; `keep` is True where there is data."""

    data: Shaped[Tensor, "batch time *rest"]
    keep: Bool[Tensor, "batch time"]
    documents: Documents | None = None
    """Example at each position of packed rows; None where each example has a row of its own."""
    copies: Int[Tensor, "batch time"] | None = None
    """Target token that each position of a source would copy, in the extended vocabulary; NO_TOKEN for none."""

    def to(self, device: torch.device | str) -> "Padded":
        """Copy on another device."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def map(self, function: Callable[[Tensor], Tensor]) -> "Padded":
        """The function applied to each tensor."""
        documents, copies = (None if tensor is None else function(tensor) for tensor in (self.documents, self.copies))
        return Padded(function(self.data), function(self.keep), documents, copies)

    @property
    def lengths(self) -> list[int]:
        """Number of kept positions of each row."""
        lengths: list[int] = self.keep.sum(1).tolist()
        return lengths

    def select_rows(self, rows: Sequence[int]) -> "Padded":
        """Batch of these rows, without the columns that are padding in all of them."""
        keep = self.keep[list(rows)]
        width = int(keep.any(0).nonzero().max()) + 1 if keep.any() else 1
        return self.map(lambda tensor: tensor[list(rows), :width])

    def round_shape(self, steps: int = STEPS) -> "Padded":
        """The rows with more padding, up to a rounded length; packed rows are all of one length and stay."""
        padding = round_length(self.data.shape[1], steps) - self.data.shape[1]
        if not padding or self.documents is not None:
            return self
        rest = (0, 0) * (self.data.dim() - 2)
        data = functional.pad(self.data, (*rest, 0, padding), value=PAD)
        copies = None if self.copies is None else functional.pad(self.copies, (0, padding), value=NO_TOKEN)
        return Padded(data, functional.pad(self.keep, (0, padding), value=False), copies=copies)

    def unpack(self) -> "Padded":
        """Packed rows with one example in each row; rows that are not packed stay."""
        if self.documents is None:
            return self
        rows = zip(self.data, self.documents, strict=True)
        return pad(
            [row[numbers == number].tolist() for row, numbers in rows for number in numbers[numbers > 0].unique().tolist()]
        )


class Batch(NamedTuple):
    """Sources, their targets if there are any, and the record of each row: a tuple of records where a row is packed.

    The source is `Padded` or, of a modality with a `Source` of its own, that.
    """

    source: Any
    target: Padded | None
    records: tuple[Any, ...] = ()

    def to(self, device: torch.device | str) -> "Batch":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    @property
    def rows(self) -> int:
        """Number of rows: examples, unless packed rows hold several."""
        return len(self.source.data)

    def select_rows(self, rows: Sequence[int]) -> "Batch":
        """Batch of these rows, each side without the columns that are padding in all of them."""
        target = None if self.target is None else self.target.select_rows(rows)
        return Batch(self.source.select_rows(rows), target, tuple(self.records[row] for row in rows if self.records))

    def round_shape(self) -> "Batch":
        """Both sides with more padding, up to rounded lengths."""
        target = None if self.target is None else self.target.round_shape()
        return self._replace(source=self.source.round_shape(), target=target)

    def unpack(self) -> "Batch":
        """Packed rows with one example in each row; rows that are not packed stay."""
        if getattr(self.source, "documents", None) is None:
            return self
        records = tuple(record for row in self.records for record in row)
        return Batch(self.source.unpack(), None if self.target is None else self.target.unpack(), records)


Named = TypeVar("Named")


def map_tensors(function: Callable[[Tensor], Tensor], batch: Named) -> Named:
    """A batch with a function applied to each of its tensors; its records stay as they are."""
    fields: Any = batch
    mapped: Named = fields._replace(**{name: map_tree(function, value) for name, value in _trees(batch)})
    return mapped


def tensors(batch: Any) -> Iterator[Tensor]:
    """Tensors of a batch, without those in its records."""
    return chain.from_iterable(leaves(value, Tensor) for _, value in _trees(batch))


def _trees(batch: Any) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in batch._asdict().items() if name != "records")


def pad(sequences: Sequence[Sequence[int]], filling: int = PAD) -> Padded:
    """Token ids as rows of one tensor."""
    longest = max((len(sequence) for sequence in sequences), default=0)
    data = torch.tensor([[*sequence, *[filling] * (longest - len(sequence))] for sequence in sequences], dtype=torch.long)
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return Padded(data.view(len(sequences), longest), torch.arange(longest)[None] < lengths[:, None])


def pad_present(sequences: Sequence[Sequence[int] | None]) -> Padded | None:
    """Token ids or labels as rows of one tensor; all examples have some, or None where none has."""
    present = [sequence for sequence in sequences if sequence is not None]
    return pad(present) if present else None


def pad_numbers(sequences: Sequence[Float[Tensor, "_time *channels"]]) -> Padded:
    """Sequences of numbers, such as frames of a spectrogram or values of a series, as rows of one tensor with zeros."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    keep = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    data = sequences[0].new_zeros(*keep.shape, *sequences[0].shape[1:])
    data[keep] = torch.cat(list(sequences))
    return Padded(data, keep)


def shifted(target: Int[Tensor, "batch time"], documents: Documents | None = None) -> Int[Tensor, "batch time"]:
    """Input of a decoder with teacher forcing: the target one position to the right, each example after BOS."""
    moved = torch.cat((torch.full_like(target[:, :1], BOS), target[:, :-1]), dim=1)
    return moved if documents is None else moved.masked_fill(begins(documents), BOS)


def begins(documents: Documents) -> Bool[Tensor, "batch time"]:
    """True at the first position of each example of packed rows, and of padding."""
    return functional.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)


def places(documents: Documents) -> Int[Tensor, "batch time"]:
    """Position of each token of packed rows in its example; 0 at padding."""
    ruler = torch.arange(documents.shape[1], device=documents.device)
    first = ruler.where(begins(documents), 0).cummax(1).values
    return (ruler - first) * (documents > 0)
