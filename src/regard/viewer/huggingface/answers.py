"""The answers of `generate` of transformers: the tokens of each, its rows in the search, and where it looked.

Attentions come step by step, for all rows of the search. Rows of a beam search change places: the token of an answer at
step t was written from row beam_indices[answer, t]. The cache of that row is the answer's own past, so its attention at that
step is where the answer looked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.data.axis import Array
from regard.viewer.arrays import array_of
from regard.viewer.huggingface.pieces import plain


@dataclass(frozen=True)
class Answer:
    """One sequence that was returned: its tokens with the prompt, how long that is, and its row at every step."""

    number: int
    ids: list[int]
    prompt: int
    rows: list[int]


def answers(output: Any, steps: int, tokenizer: Any) -> list[Answer]:
    """Every returned sequence, without the padding behind its end."""
    beams = getattr(output, "beam_indices", None)
    sequences = output.sequences.tolist()
    prompt = len(sequences[0]) - (steps if beams is None else beams.shape[1])
    answered = []
    for number, ids in enumerate(sequences):
        if beams is not None:
            rows = [row for row in beams[number].tolist() if row >= 0]
        else:
            rows = [number] * _length(ids[prompt:], ends(tokenizer))
        answered.append(Answer(number, ids[: prompt + len(rows)], prompt, rows))
    return answered


def ends(tokenizer: Any) -> list[int]:
    """The tokens that end a text, where a tokenizer says so."""
    end = None if tokenizer is None else plain(tokenizer).eos_token_id
    return [] if end is None else list(end) if isinstance(end, list | tuple) else [end]


def joined(steps: Sequence[Sequence[Any]], rows: Sequence[int], own: bool) -> list[Array]:
    """(heads, queries, keys) of each layer, from the step and the row of every token; `own` keys grow with the queries.

    The first step has as many queries as the prompt, later ones one each, or all again where nothing was cached.
    """
    first = steps[0][0].shape[2]
    queries = first + len(rows) - 1
    layers = []
    for layer in range(len(steps[0])):
        heads = steps[0][layer].shape[1]
        keys = queries if own else steps[0][layer].shape[3]
        start = array_of(steps[0][layer][rows[0]], f"layer {layer}, step 0")
        joint = np.zeros((heads, queries, keys), start.dtype)
        joint[:, :first, : min(keys, start.shape[2])] = start[:, :, :keys]
        for step, row in enumerate(rows[1:], 1):
            last = array_of(steps[step][layer][row], f"layer {layer}, step {step}")[:, -1]
            seen = first + step if own else keys
            last = last[:, :seen]  # a cache of fixed size has places that are not written yet
            joint[:, first + step - 1, seen - last.shape[1] : seen] = last  # one that slides has forgotten the first
        layers.append(joint)
    return layers


def _length(generated: Sequence[int], ends: Sequence[int]) -> int:
    """Tokens up to the first that ends the text, that one included."""
    return next((place + 1 for place, number in enumerate(generated) if number in ends), len(generated))
