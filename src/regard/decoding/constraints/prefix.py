"""Prefix: an answer that begins with a given text.

The words of the text that are complete are written as the tokeniser writes them. The last word stays open, unless a space
ends the text: any tokens may write it that begin with it, so that "Tom cha" goes on to "Tom chases" and, where tokens are
parts of words, the model cuts the word as it likes best. Open words are what tokenisers cut in another way when more
follows, and a model that is made to begin with such a cut writes nonsense.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.text.tokenizers import Tokeniser
from regard.data.text.tokenizers.byte_level import Exact
from regard.data.text.tokenizers.token_offsets import clean
from regard.data.text.tokenizers.vocab_based import Listed
from regard.data.text.tokenizers.words import Words
from regard.data.text.vocabulary import BOS, NAMES, UNK

REFUSED = -1
"""Where a token that a prefix does not allow leads."""


@dataclass(frozen=True, eq=False)
class Prefix:
    """What may be written in each state, and the state that it leads to; after the last state everything may."""

    states: tuple[Mapping[int, int], ...] = ()

    @classmethod
    def forced(cls, tokens: list[int]) -> "Prefix":
        """Exactly these tokens."""
        return cls(tuple({token: place + 1} for place, token in enumerate(tokens)))

    @classmethod
    def of(cls, text: str, tokeniser: Tokeniser) -> "Prefix":
        """A text as the tokens of a tokeniser write it."""
        if isinstance(tokeniser, Exact):
            return _bytes(clean(text), tokeniser)
        assert isinstance(tokeniser, Listed), "tokens are bytes, or listed"
        return _listed(text, tokeniser)


def table(prefixes: list[Prefix], vocabulary: int) -> tuple[Int[Tensor, "states vocabulary"], dict[Prefix, int]]:
    """All prefixes as one table of next states, and the first state of each. State 0 is free: everything leads back to it.

    BOS, which comes before any prefix, leaves every state as it is.
    """
    rows, firsts = [torch.zeros(vocabulary, dtype=torch.int32)], {}
    for prefix in dict.fromkeys(prefixes):
        first, count = len(rows), len(prefix.states)
        firsts[prefix] = first if count else 0
        for place, ways in enumerate(prefix.states):
            row = torch.full((vocabulary,), REFUSED, dtype=torch.int32)
            row[BOS] = first + place
            for token, state in ways.items():
                row[token] = first + state if state < count else 0
            rows.append(row)
    return torch.stack(rows), firsts


def _listed(text: str, tokeniser: Listed) -> Prefix:
    """Whole tokens, of which the last may be longer; those of characters cannot."""
    tokens = tokeniser.tokens(text)
    numbers = tokeniser.vocabulary.numbers(tokens)
    ways = [[number] for number in numbers]
    if tokens and isinstance(tokeniser, Words) and not text[-1].isspace():
        known = enumerate(tokeniser.vocabulary.tokens, len(NAMES))
        ways[-1] = [number for number, token in known if token.startswith(tokens[-1])] or [UNK]
    for token, each in zip(tokens, ways, strict=True):
        if UNK in each:
            raise ValueError(
                f"the prefix {text!r} holds {token!r}, which the model cannot write; begin with words that it has learnt"
            )
    return Prefix(tuple(dict.fromkeys(each, place + 1) for place, each in enumerate(ways)))


def _bytes(text: str, tokeniser: Exact) -> Prefix:
    """The tokens of the complete words, then whatever writes the bytes of the last one."""
    last = re.search(r"\s+\S*\Z", text)
    start = last.start() if last else 0
    forced, rest = tokeniser.encode(text[:start]), text[start:].encode()
    states: list[Mapping[int, int]] = [{token: place + 1} for place, token in enumerate(forced)]
    pieces = [(number, piece) for number, piece in enumerate(tokeniser.table) if number >= len(NAMES) and piece]
    for place in range(len(rest)):
        ahead = rest[place:]
        states.append(
            {
                number: len(forced) + min(len(rest), place + len(piece))
                for number, piece in pieces
                if ahead.startswith(piece) or piece.startswith(ahead)
            }
        )
    return Prefix(tuple(states))
