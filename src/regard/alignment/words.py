"""Units of an alignment: words, whose tokens a model reads and writes.

Words are separated by spaces. Where tokens are characters, or with `tokens=True`, each token is a unit of its own.
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
from regard.data.text.tokenizers import Piece, Tokenizer
from regard.data.text.tokenizers.offsets import Span, spans


class Units(NamedTuple):
    """The units of one side of a pair and the tokens that make up each; EOS is in none."""

    texts: tuple[str, ...]
    members: Bool[Tensor, "units tokens"]


def source_units(codec: TextCodec, record: Record, tokens: bool = False) -> Units:
    """The units of a source; those that were truncated have no tokens."""
    pieces = codec.source.pieces(codec.prepare(record.source))
    return _units(codec.source, codec.prepare(record.source), _truncated_spans(pieces, codec.max_source_length), tokens)


def target_units(codec: TextCodec, record: Record, tokens: bool = False) -> Units:
    """The units of a reference target."""
    text = codec.prepare(record.target or "")
    return _units(codec.target, text, _truncated_spans(codec.target.pieces(text), codec.max_target_length), tokens)


def output_units(codec: TextCodec, numbers: Sequence[int], tokens: bool = False) -> Units:
    """The units of an output of the model, which ends with EOS."""
    text = codec.decode(numbers)
    return _units(codec.target, text, spans(codec.target, numbers, text), tokens)


def merge_weights(
    weights: Float[Tensor, "*heads target source"], source: Units, target: Units
) -> Float[Tensor, "*heads targets sources"]:
    """Weights between units: the sum over a source unit's tokens, the mean over a target unit's.

    The weight of a source token that covers several words is divided equally among them.
    """
    parts = source.members.to(weights) / source.members.sum(0).clamp_min(1)
    means = target.members.to(weights) / target.members.sum(1, keepdim=True).clamp_min(1)
    return means @ weights @ parts.mT


def merge_links(links: Iterable[Link], source: Units, target: Units) -> Links:
    """Links between units from links between tokens: units are linked if any of their tokens are."""
    return _map_links(links, source.members.T.tolist(), target.members.T.tolist())


def expand_links(links: Iterable[Link], source: Units, target: Units) -> Links:
    """Links between tokens from links between units: all tokens of one with all of the other."""
    return _map_links(links, source.members.tolist(), target.members.tolist())


def aligns_tokens(tokenizer: Tokenizer, tokens: bool = False) -> bool:
    """True if each token is a unit: with `tokens`, and where tokens are characters."""
    return tokens or tokenizer.kind == "characters"


def _truncated_spans(pieces: Sequence[Piece], max_length: int) -> list[Span]:
    """The span of each token of an example, truncated to the maximum length; EOS has none."""
    return [*((piece.start, piece.end) for piece in pieces[: max_length - 1]), None]


def _units(tokenizer: Tokenizer, text: str, token_spans: Sequence[Span], tokens: bool) -> Units:
    if aligns_tokens(tokenizer, tokens):
        return _token_units(text, token_spans)
    words = list(re.finditer(r"\S+", text))
    members = [[_overlaps(word.span(), span) for span in token_spans] for word in words]
    texts = tuple(word.group() for word in words)
    return Units(texts, torch.tensor(members, dtype=torch.bool).view(len(words), len(token_spans)))


def _token_units(text: str, token_spans: Sequence[Span]) -> Units:
    indices = [index for index, span in enumerate(token_spans) if span is not None]
    members = torch.zeros(len(indices), len(token_spans), dtype=torch.bool)
    members[torch.arange(len(indices)), indices] = True
    return Units(tuple(text[slice(*span)] for span in token_spans if span is not None), members)


def _overlaps(word: tuple[int, int], span: Span) -> bool:
    return span is not None and max(word[0], span[0]) < min(word[1], span[1])


def _map_links(links: Iterable[Link], sources: list[list[bool]], targets: list[list[bool]]) -> Links:
    """Replace each link by all pairs of the positions that are True in the rows of its source and its target."""
    mapped = ((_true_indices(sources[source]), _true_indices(targets[target])) for source, target in links)
    return frozenset((source, target) for ones, others in mapped for source in ones for target in others)


def _true_indices(flags: Sequence[bool]) -> list[int]:
    return [index for index, flag in enumerate(flags) if flag]
