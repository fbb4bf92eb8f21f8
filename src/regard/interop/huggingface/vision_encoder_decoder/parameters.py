"""Pieces: which parameters of ours each of theirs holds, and how it lies there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Piece(NamedTuple):
    """A tensor of theirs, and those of ours that it holds one after the other."""

    theirs: str
    shape: tuple[int, ...]
    """Of theirs."""
    ours: tuple[str, ...]
    turned: bool = False
    """Whether its rows are our columns, as in GPT-2."""


def taken(pieces: Iterable[Piece], theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Ours from theirs."""
    found: dict[str, Tensor] = {}
    for piece in pieces:
        value = theirs[piece.theirs]
        parts = (value.mT if piece.turned else value).chunk(len(piece.ours))
        found |= dict(zip(piece.ours, parts, strict=True))
    return found


def given(pieces: Iterable[Piece], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Theirs from ours."""
    found: dict[str, Tensor] = {}
    for piece in pieces:
        value = torch.cat([ours[name] for name in piece.ours])
        found[piece.theirs] = value.mT if piece.turned else value
    return found


def linear(theirs: str, ours: str | tuple[str, ...], before: int, after: int, turned: bool = False) -> Iterator[Piece]:
    """The matrix and the bias of a projection, or of several that lie side by side; `after` is the width of all."""
    names = (ours,) if isinstance(ours, str) else ours
    shape = (before, after) if turned else (after, before)
    yield Piece(f"{theirs}.weight", shape, tuple(f"{name}.weight" for name in names), turned)
    yield Piece(f"{theirs}.bias", (after,), tuple(f"{name}.bias" for name in names))


def norm(theirs: str, ours: str, size: int) -> Iterator[Piece]:
    """The weight and the bias of a norm."""
    for part in ("weight", "bias"):
        yield Piece(f"{theirs}.{part}", (size,), (f"{ours}.{part}",))
