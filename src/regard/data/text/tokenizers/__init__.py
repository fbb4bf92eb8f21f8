"""Tokenizers: text <-> token numbers, five kinds by name, a file each.

    words         what stands between spaces when the text came tokenized, else words, symbols and Chinese characters
    characters    code points
    bytes         UTF-8
    bpe           bytes that often stand together
    unigram       the likeliest cut into pieces

The last three write every text of Unicode and give it back unchanged; characters does so for those it knows, and words for
those it knows with every run of space narrowed to one. Half a surrogate pair is no character and is read as U+FFFD.
"""

import difflib
from collections.abc import Sequence
from importlib import import_module
from importlib.resources.abc import Traversable
from typing import Any

from regard.data.text.tokenizers import settings
from regard.data.text.tokenizers.token_offsets import Piece
from regard.data.text.tokenizers.types import Tokenizer

__all__ = ["KINDS", "Piece", "Tokenizer", "load", "train"]

KINDS = ("words", "characters", "bytes", "bpe", "unigram")
PRETRAINED = "pretrained"
"""One more, which is not trained here: it comes with a model from elsewhere."""


def train(kind: str, texts: Sequence[str], size: int, min_frequency: int = 1) -> Tokenizer:
    """Train a tokenizer of one kind: at most `size` numbers, no word or character rarer than `min_frequency`."""
    if kind == PRETRAINED:
        raise ValueError(
            "pretrained tokens come with a model from elsewhere (`regard import`), and with train.init_from=RUN from its "
            f"run; to train tokens, name one of {', '.join(KINDS)}"
        )
    trained: Tokenizer = _find(kind).train(texts, size, min_frequency)
    return trained


def load(directory: Traversable, name: str) -> Tokenizer:
    """Read what a tokenizer's `save` wrote."""
    loaded: Tokenizer = _find(settings.read(directory, name)["tokens"]).load(directory, name)
    return loaded


def _find(kind: str) -> Any:
    if kind == PRETRAINED:
        return import_module(f"regard.data.text.tokenizers.{kind}").Pretrained
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(KINDS)}"
        raise ValueError(f"no tokenizer is called {kind!r}; {hint}")
    return getattr(import_module(f"regard.data.text.tokenizers.{kind}"), kind.capitalize())
