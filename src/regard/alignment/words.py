"""Units: what an alignment is about. Models read and write tokens; people align words.

A word is what stands between spaces of the text. Where a side is made of characters, or where nothing else is asked for,
each token is a unit of its own.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.alignment.links import Link, Links
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.data.tokenizers import Piece, Tokenizer
from regard.data.tokenizers.offsets import Span, spans


class Units(NamedTuple):
    """The units of one side of a pair, and which tokens make up each; the token that ends a side is in none."""

    texts: tuple[str, ...]
    members: Bool[Tensor, "units tokens"]


def source(codec: TextCodec, record: Record, tokens: bool = False) -> Units:
    """The units of a source; those that were cut away have no tokens."""
    pieces = codec.source.pieces(codec.prepare(record.source))
    return _units(codec.source, codec.prepare(record.source), _kept(pieces, codec.max_source_length), tokens)


def target(codec: TextCodec, record: Record, tokens: bool = False) -> Units:
    """The units of a target that is given."""
    text = codec.prepare(record.target or "")
    return _units(codec.target, text, _kept(codec.target.pieces(text), codec.max_target_length), tokens)


def answer(codec: TextCodec, numbers: Sequence[int], tokens: bool = False) -> Units:
    """The units of a target that a model wrote, EOS at its end."""
    text = codec.decode(numbers)
    return _units(codec.target, text, spans(codec.target, numbers, text), tokens)


def merge(
    weights: Float[Tensor, "*heads target source"], source: Units, target: Units
) -> Float[Tensor, "*heads targets sources"]:
    """The weights between units: the sum over a source unit's tokens, the mean over a target unit's.

    A source token that covers several words gives each an equal part.
    """
    parts = source.members.to(weights) / source.members.sum(0).clamp_min(1)
    means = target.members.to(weights) / target.members.sum(1, keepdim=True).clamp_min(1)
    return means @ weights @ parts.mT


def joined(links: Iterable[Link], source: Units, target: Units) -> Links:
    """Links between units from those between tokens: units are linked when any of their tokens are."""
    places = (source.members.T.tolist(), target.members.T.tolist())
    found = ([_true(side[place]) for side, place in zip(places, link, strict=True)] for link in links)
    return frozenset((one, other) for ones, others in found for one in ones for other in others)


def spread(links: Iterable[Link], source: Units, target: Units) -> Links:
    """Links between tokens from those between units: all tokens of one with all of the other."""
    sides = (source.members.tolist(), target.members.tolist())
    found = ([_true(side[place]) for side, place in zip(sides, link, strict=True)] for link in links)
    return frozenset((one, other) for ones, others in found for one in ones for other in others)


def by_token(tokenizer: Tokenizer, asked: bool = False) -> bool:
    """Whether each token is a unit: where that is asked for, and where tokens are characters."""
    return asked or tokenizer.kind == "characters"


def _kept(pieces: Sequence[Piece], longest: int) -> list[Span]:
    """What the tokens of an example cover: as many as there is room for, and the end, which covers nothing."""
    return [*((piece.start, piece.end) for piece in pieces[: longest - 1]), None]


def _units(tokenizer: Tokenizer, text: str, covered: Sequence[Span], tokens: bool) -> Units:
    if by_token(tokenizer, tokens):
        return _of_tokens(text, covered)
    words = list(re.finditer(r"\S+", text))
    table = [[_overlap(each.span(), span) for span in covered] for each in words]
    return Units(tuple(each.group() for each in words), torch.tensor(table, dtype=torch.bool).view(len(words), len(covered)))


def _of_tokens(text: str, covered: Sequence[Span]) -> Units:
    places = [place for place, span in enumerate(covered) if span is not None]
    members = torch.zeros(len(places), len(covered), dtype=torch.bool)
    members[torch.arange(len(places)), places] = True
    return Units(tuple(text[slice(*span)] for span in covered if span is not None), members)


def _overlap(word: tuple[int, int], span: Span) -> bool:
    return span is not None and max(word[0], span[0]) < min(word[1], span[1])


def _true(flags: Sequence[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]
