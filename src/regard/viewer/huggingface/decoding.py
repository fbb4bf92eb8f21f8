"""Decoding of `generate` of transformers: the alternatives of each step, and the beam search tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.axis import Array, Text
from regard.viewer.arrays import array_of
from regard.viewer.huggingface.answers import Answer, ends
from regard.viewer.huggingface.pieces import shown
from regard.viewer.huggingface.replay import Tree, replay
from regard.viewer.trace import Beams, Choice


def choices(output: Any, answer: Answer, target: Text, offset: int, count: int, tokenizer: Any) -> tuple[Choice, ...]:
    """Token of each step and its alternatives; the first is query `offset`, whose label is in `target`."""
    scores = getattr(output, "scores", None)
    if not scores:
        return ()
    searched = getattr(output, "beam_indices", None) is not None
    labels, steps = target.labels, []
    for step, row in enumerate(answer.rows):
        line = scores[step][row].float()
        logprobs = line if searched else line.log_softmax(-1)  # a beam search has taken the logarithm already
        best = logprobs.topk(min(count, len(logprobs)))
        others = tuple(
            (shown(number, tokenizer), score)
            for score, number in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            if np.isfinite(score)
        )
        chosen = float(logprobs[answer.ids[answer.prompt + step]])
        if np.isfinite(chosen):
            steps.append(Choice(offset + step, labels[offset + step], chosen, others))
    return tuple(steps)


def tree(output: Any, answer: Answer, tokenizer: Any, attention: str, cross: Any) -> Beams | None:
    """The whole beam search that an answer came out of, or None where it cannot be found again."""
    replayed = _searched(output, answer, tokenizer)
    if replayed is None:
        return None
    search, width = replayed
    base = answer.rows[0] // width * width
    best = search.find(answer.ids[answer.prompt :], [row - base for row in answer.rows])
    if best is None:
        return None
    tokens = tuple(
        tuple(shown(row.token, tokenizer) for row in rows) + ("",) * (search.broadest - len(rows)) for rows in search.steps
    )
    looked = _looked(search, cross, base) if cross else None
    named = attention if looked is not None else None
    return Beams(search.parents(), tokens, search.scores(), search.ended(), best, named, looked)


def _searched(output: Any, answer: Answer, tokenizer: Any) -> tuple[Tree, int] | None:
    scores, beams = getattr(output, "scores", None), getattr(output, "beam_indices", None)
    if not scores or beams is None:
        return None
    over = _over(output, answer, tokenizer)
    if not over:
        return None
    inputs = len(set(beams[:, 0].tolist()))  # at the first step all hypotheses of an input come from its first row
    width = scores[0].shape[0] // inputs
    base = answer.rows[0] // width * width
    return replay([step[base : base + width].float() for step in scores], over), width


def _over(output: Any, answer: Answer, tokenizer: Any) -> list[int]:
    """The tokens that end a text: those that the tokenizer knows, and the last of an answer that was done early."""
    end_tokens = set(ends(tokenizer))
    if len(answer.rows) < len(output.scores):
        end_tokens.add(answer.ids[-1])
    return sorted(end_tokens)


def _looked(search: Tree, cross: Sequence[Sequence[Any]], base: int) -> Array:
    """(steps, rows, keys): where each row of the tree looked when it wrote its token, the mean of the last layer's heads."""
    keys = cross[0][-1].shape[3]
    weights = np.zeros((len(search.steps), search.broadest, keys), np.float16)
    for step, rows in enumerate(search.steps):
        means = array_of(cross[step][-1], "cross attention").mean(1, dtype=np.float32)[:, -1]
        for place, row in enumerate(rows):
            weights[step, place] = means[base + row.parent]
    return weights
