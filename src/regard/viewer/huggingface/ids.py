"""The tokens that a transformers model read, in any form that people hold them in, as an axis and what of it is padding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.data.axis import Axis, Index, Text
from regard.viewer.arrays import AXES
from regard.viewer.huggingface.pieces import covered, plain
from regard.viewer.io.errors import TraceError

Kept = list[int]
"""Places that are no padding."""
IGNORED = -100
"""Label of positions without loss."""


def placed(
    tokens: Any, example: tuple[int, int], length: int, tokenizer: Any, lang: str | None, what: str
) -> tuple[Axis, Kept]:
    """The axis of one example, number and of how many, that has `length` places, and which of these are no padding.

    `tokens` is what the tokenizer returned, token numbers or tokens of one text or a batch, an axis, or None: then
    places are numbered.
    """
    everything = list(range(length))
    if tokens is None:
        return Index(length), everything
    if isinstance(tokens, AXES):
        return _fits(tokens, length, what), everything
    mask = None
    if isinstance(tokens, Mapping) or hasattr(tokens, "input_ids"):
        mask, tokens = tokens.get("attention_mask"), tokens["input_ids"]
    line = line_of(tokens, example, what)
    if line and isinstance(line[0], str):
        return _fits(Text.of(line, lang=lang), length, what), everything
    if len(line) != length:
        raise TraceError(f"{what} has {len(line)} tokens, and attention saw {length} places; give what the model was given")
    if mask is None:
        kept = _kept(line, tokenizer, front=what == "source")
    else:
        kept = [place for place, seen in enumerate(line_of(mask, example, what)) if seen] or everything
    for place in kept:
        if line[place] < 0:
            raise TraceError(
                f"{what}: place {place} has the number {line[place]}, which is no token; leave it out of the text"
            )
    return covered([line[place] for place in kept], tokenizer, lang), kept


def _fits(axis: Axis, length: int, what: str) -> Axis:
    if len(axis) != length:
        raise TraceError(f"{what} has {len(axis)} places, and attention saw {length}; give what the model was given")
    return axis


def line_of(tokens: Any, example: tuple[int, int], what: str) -> list[Any]:
    """The tokens of one example: a batch may be smaller than the answers, several of which then belong to one input."""
    number, count = example
    rows = tokens.tolist() if hasattr(tokens, "tolist") else tokens
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not len(rows):
        raise TraceError(
            f"{what}: needs what the tokenizer returned, token numbers, tokens or an axis, got {type(tokens).__name__}"
        )
    if isinstance(rows[0], Sequence) and not isinstance(rows[0], str):
        if count % len(rows):
            raise TraceError(
                f"{what} has {len(rows)} rows and the model answered for {count}; give what the model was given"
            )
        return list(rows[number * len(rows) // count])
    if not isinstance(rows[0], str | int):
        raise TraceError(f"{what}: a token is a number or a text, got {type(rows[0]).__name__}")
    return list(rows)


def _kept(line: Sequence[int], tokenizer: Any, front: bool) -> Kept:
    """Without padding at the end or, of a source, at either end, where the tokenizer has a token that is nothing else.

    In front of what a decoder reads padding is no padding: some models start with that token.
    """
    padding = {IGNORED}
    if tokenizer is not None:
        known = plain(tokenizer)
        padding |= {known.pad_token_id} - {known.eos_token_id, known.bos_token_id, None}
    real = np.flatnonzero([number not in padding for number in line])
    if not len(real):
        return list(range(len(line)))
    return list(range(int(real[0]) if front else 0, int(real[-1]) + 1))
