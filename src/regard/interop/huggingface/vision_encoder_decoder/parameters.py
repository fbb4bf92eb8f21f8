"""Parameter mapping between transformers and our names, with transposition."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Piece(NamedTuple):
    """A tensor of transformers, and our tensors that are concatenated in it."""

    theirs: str
    shape: tuple[int, ...]
    """Shape in transformers."""
    ours: tuple[str, ...]
    transposed: bool = False
    """True for a transposed matrix, as in GPT-2."""


def convert_to_ours(pieces: Iterable[Piece], theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert their tensors to ours."""
    converted: dict[str, Tensor] = {}
    for piece in pieces:
        value = theirs[piece.theirs]
        parts = (value.mT if piece.transposed else value).chunk(len(piece.ours))
        converted |= dict(zip(piece.ours, parts, strict=True))
    return converted


def convert_to_theirs(pieces: Iterable[Piece], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert our tensors to theirs."""
    converted: dict[str, Tensor] = {}
    for piece in pieces:
        value = torch.cat([ours[name] for name in piece.ours])
        converted[piece.theirs] = value.mT if piece.transposed else value
    return converted


def linear(theirs: str, ours: str | tuple[str, ...], before: int, after: int, transposed: bool = False) -> Iterator[Piece]:
    """The matrix and the bias of a projection, or of several that lie side by side; `after` is the width of all."""
    names = (ours,) if isinstance(ours, str) else ours
    shape = (before, after) if transposed else (after, before)
    yield Piece(f"{theirs}.weight", shape, tuple(f"{name}.weight" for name in names), transposed)
    yield Piece(f"{theirs}.bias", (after,), tuple(f"{name}.bias" for name in names))


def norm(theirs: str, ours: str, size: int) -> Iterator[Piece]:
    """The weight and the bias of a norm."""
    for part in ("weight", "bias"):
        yield Piece(f"{theirs}.{part}", (size,), (f"{ours}.{part}",))
