"""Prefix-constrained decoding: an answer that begins with a given text.

The complete words of the text are tokenized as usual. The last word stays open, unless a space ends the text: any tokens
that begin with it may write it, so that "Tom cha" goes on to "Tom chases" and, with subword tokens, the model segments the
word as it likes best. Tokenizers segment unfinished words differently from whole ones, and a model that is forced to begin
with such a segmentation writes nonsense.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.special_tokens import BOS, NAMES, UNK
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.byte_level import ByteLevelTokenizer
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.data.text.tokenizers.token_offsets import clean
from regard.data.text.tokenizers.vocab_based import VocabTokenizer
from regard.data.text.tokenizers.words import Words

FORBIDDEN = -1
"""Next state of a token that a prefix does not allow."""


@dataclass(frozen=True, eq=False)
class Prefix:
    """Allowed tokens of each state, with the state that each leads to; after the last state all are allowed."""

    states: tuple[Mapping[int, int], ...] = ()

    @classmethod
    def forced(cls, tokens: list[int]) -> "Prefix":
        """Prefix of exactly these tokens."""
        return cls(tuple({token: place + 1} for place, token in enumerate(tokens)))

    def behind(self, token: int) -> "Prefix":
        """Prefix behind a first token, such as a forced BOS that writes nothing."""
        shifted = ({allowed: state + 1 for allowed, state in transitions.items()} for transitions in self.states)
        return Prefix(({token: 1}, *shifted))

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer) -> "Prefix":
        """Prefix of a text, in the tokens of a tokenizer."""
        if isinstance(tokenizer, ByteLevelTokenizer):
            return _build_byte_prefix(clean(text), tokenizer)
        if isinstance(tokenizer, Pretrained):
            return _build_pretrained_prefix(text, tokenizer)
        assert isinstance(tokenizer, VocabTokenizer), "tokens are bytes, listed or pretrained"
        return _build_token_prefix(text, tokenizer)


def build_table(prefixes: list[Prefix], vocabulary: int) -> tuple[Int[Tensor, "states vocabulary"], dict[Prefix, int]]:
    """Transition table of all prefixes, and the first state of each; state 0 is free, and all prefixes lead to it.

    BOS, which comes before any prefix, leaves every state as it is.
    """
    rows, firsts = [torch.zeros(vocabulary, dtype=torch.int32)], {}
    for prefix in dict.fromkeys(prefixes):
        first, count = len(rows), len(prefix.states)
        firsts[prefix] = first if count else 0
        for place, ways in enumerate(prefix.states):
            row = torch.full((vocabulary,), FORBIDDEN, dtype=torch.int32)
            row[BOS] = first + place
            for token, state in ways.items():
                row[token] = first + state if state < count else 0
            rows.append(row)
    return torch.stack(rows), firsts


def _build_token_prefix(text: str, tokenizer: VocabTokenizer) -> Prefix:
    """Prefix of whole tokens, of which the last may be longer, except with character tokens."""
    tokens = tokenizer.tokens(text)
    numbers = tokenizer.vocabulary.numbers(tokens)
    ways = [[number] for number in numbers]
    if tokens and isinstance(tokenizer, Words) and not text[-1].isspace():
        known = enumerate(tokenizer.vocabulary.tokens, len(NAMES))
        ways[-1] = [number for number, token in known if token.startswith(tokens[-1])] or [UNK]
    for token, way in zip(tokens, ways, strict=True):
        if UNK in way:
            raise ValueError(
                f"the prefix {text!r} holds {token!r}, which the model cannot write; begin with words that it has learnt"
            )
    return Prefix(tuple(dict.fromkeys(way, place + 1) for place, way in enumerate(ways)))


def _build_byte_prefix(text: str, tokenizer: ByteLevelTokenizer) -> Prefix:
    """Prefix of the tokens of the complete words, then any tokens that write the bytes of the last one."""
    start = _find_last_word(text)
    return _build_open_word(tokenizer.encode(text[:start]), text[start:].encode(), tokenizer.table)


def _build_pretrained_prefix(text: str, tokenizer: Pretrained) -> Prefix:
    """Prefix in tokens from elsewhere, which may be unable to write it; without a tokenizer, all token ids are complete."""
    normal = tokenizer.normalise(text)
    if text[-1:].isspace() and not normal[-1:].isspace():
        normal += " "  # a normal form without the space that closes the last word
    start = _find_last_word(normal) if tokenizer.model is not None else len(normal)
    forced, rest = tokenizer.encode_target(normal[:start]), normal[start:]
    if not forced and rest and tokenizer.drops_first_space and not rest[0].isspace():
        rest = f" {rest}"
    prefix = _build_open_word(forced, rest.encode(), tokenizer.continuations)
    if UNK in forced or {} in prefix.states[len(forced) :][:1]:
        raise ValueError(f"the prefix {text!r} holds what the model cannot write; begin with words that it has learnt")
    return prefix


def _find_last_word(text: str) -> int:
    """Index where the last word of a text begins, with the space before it."""
    last = re.search(r"\s+\S*\Z", text)
    return last.start() if last else 0


def _build_open_word(forced: list[int], rest: bytes, table: Sequence[bytes]) -> Prefix:
    """Prefix of these tokens, then of any tokens that write `rest`, without those after which nothing could.

    A state of which no token leads to the end allows none.
    """
    pieces = [(number, piece) for number, piece in enumerate(table) if number >= len(NAMES) and piece]
    states: list[Mapping[int, int]] = [{token: place + 1} for place, token in enumerate(forced)]
    inner = list[Mapping[int, int]]()  # from the last to the first
    for place in reversed(range(len(rest))):
        ahead = rest[place:]
        ways = {
            number: len(forced) + min(len(rest), place + len(piece))
            for number, piece in pieces
            if piece.startswith(ahead) or (ahead.startswith(piece) and inner[-len(piece)])
        }
        inner.append(ways)
    return Prefix((*states, *reversed(inner)))
