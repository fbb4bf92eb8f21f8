"""Validation of decoding: the steps, and the tree of a beam search."""

import numpy as np

from regard.viewer.io.errors import TraceError, finite, first, floats, shaped, text
from regard.viewer.trace import Beams, Example


def check_steps(example: Example, where: str) -> None:
    """Every step is a place of some query axis, with finite log-probabilities."""
    axes = {attention_map.query for attention_map in example.attentions} or set(example.axes)
    longest = max((len(example.axes[name]) for name in axes), default=0)
    for number, step in enumerate(example.steps):
        place = f"{where}, step {number}"
        if not 0 <= step.query < longest:
            raise TraceError(f"{place}: it belongs to query {step.query}, and the longest query axis has {longest} places")
        for token, logprob in ((step.token, step.logprob), *step.candidates):
            text(token, f"{place}, token")
            if not np.isfinite(logprob):
                raise TraceError(f"{place}: the log-probability of {token!r} must be a finite number, got {logprob}")


def check_beams(example: Example, where: str) -> None:
    """Arrays of one shape, parents that exist, and an answer that is somewhere in the tree."""
    beams = example.beams
    if beams is None:
        return
    where = f"{where}, beams"
    if beams.parents.ndim != 2 or 0 in beams.parents.shape:
        raise TraceError(f"{where}: parents are (steps, width), got {beams.parents.shape}")
    steps, width = beams.parents.shape
    for name, array in (("scores", beams.scores), ("ended", beams.ended)):
        shaped(array, (steps, width), f"{name} (steps, width)", where)
    if len(beams.tokens) != steps or any(len(row) != width for row in beams.tokens):
        raise TraceError(f"{where}: tokens must be {steps} steps of {width} rows, as parents are")
    for row in beams.tokens:
        for token in row:
            text(token, f"{where}, token")
    _kinds(beams, where)
    _tree(beams, where)
    _check_weights(beams, example, where)


def _kinds(beams: Beams, where: str) -> None:
    if beams.parents.dtype.kind != "i":
        raise TraceError(f"{where}: parents must be whole numbers with a sign, got {beams.parents.dtype}")
    if beams.ended.dtype != bool:
        raise TraceError(f"{where}: ended must be boolean, got {beams.ended.dtype}")
    floats(beams.scores, "scores", where)
    wrong = ~np.isfinite(beams.scores) & (beams.parents >= 0)
    if wrong.any():
        step, row = first(wrong)
        raise TraceError(f"{where}, step {step}, row {row}: a score must be a finite number, got {beams.scores[step, row]}")


def _tree(beams: Beams, where: str) -> None:
    steps, width = beams.parents.shape
    for step, row in np.argwhere(beams.parents >= 0).tolist():
        parent = int(beams.parents[step, row])
        if parent >= width or (step > 0 and beams.parents[step - 1, parent] < 0):
            raise TraceError(f"{where}, step {step}, row {row}: its parent, row {parent} of the step before, does not exist")
    if (beams.parents < -1).any():
        step, row = first(beams.parents < -1)
        raise TraceError(
            f"{where}, step {step}, row {row}: a parent is a row, or -1 for nobody, got {beams.parents[step, row]}"
        )
    step, row = beams.best
    if not (0 <= step < steps and 0 <= row < width) or beams.parents[step, row] < 0:
        raise TraceError(f"{where}: the best answer is said to end at step {step}, row {row}, and nothing is there")


def _check_weights(beams: Beams, example: Example, where: str) -> None:
    if beams.weights is None:
        return
    attentions = {attention_map.name: attention_map for attention_map in example.attentions}
    if beams.name not in attentions:
        raise TraceError(
            f"{where}: their weights are of the attention {beams.name!r}; the example has {', '.join(attentions) or 'none'}"
        )
    key = attentions[beams.name].key
    floats(beams.weights, "weights", where)
    shaped(beams.weights, (*beams.parents.shape, len(example.axes[key])), f"weights (steps, width, {key})", where)
    finite(beams.weights, ("step", "row", "key"), "a weight", where)
