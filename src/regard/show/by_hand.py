"""One score and one share written out as somebody with a pencil would find them."""

import math
from typing import Any

import torch
from torch import Tensor

from regard.attention.per_head import spread
from regard.show.example import Example, Stages
from regard.show.table import decimals, line


def score_by_hand(example: Example, found: Stages) -> list[list[str]]:
    """One score from the two sides that it compares, a line for each step; the last ends with the score."""
    query, key = found.pair
    request, score, cell = example.request, example.request.score, found.scores[0, query, key]
    q, k = request.query[-1, 0, query], spread(example.key, len(found.scores))[-1, 0, key]
    left, right = q, spread(request.keys, len(found.scores))[-1, 0, key]
    if hasattr(score, "project"):
        left = score.project(request.query)[-1, 0, query]
    rows = [["q", line(q)], ["k", line(k)]]
    sides = (
        _side(score, "project", "q") if not left.equal(q) else "q",
        _side(score, "prepare", "k") if not right.equal(k) else "k",
    )
    rows += [[side, line(numbers)] for side, numbers in zip(sides, (left, right), strict=True) if side not in ("q", "k")]
    if left.shape == right.shape and torch.isclose(left @ right, cell):
        return [*rows, [" · ".join(sides), products(left, right)]]
    if hasattr(score, "v"):
        bent, v = torch.tanh(left + right), score.v.weight[0, 0]
        return [*rows, ["tanh of their sum", line(bent)], ["v", line(v)], ["vᵀ tanh", products(v, bent)]]
    if hasattr(score, "sigma"):
        gap, variance = q - k, math.sqrt(len(q)) if score.sigma is None else score.sigma**2
        worked = f"-{float(gap @ gap):.3f} / (2 · {variance:.3f}) = {-float(gap @ gap) / 2 / variance:.3f}"
        return [*rows, ["q - k", line(gap)], ["‖q - k‖²", products(gap, gap)], ["score", worked]]
    return [rows[0], ["for each key", line(found.scores[0, query])], [f"at position {key}", f"= {float(cell):.3f}"]]


def share_by_hand(normalise: Any, found: Stages) -> str:
    """One share from the scores that its query may see; ends with the share."""
    query, key = found.pair
    scores, shares = found.scores[0, query], found.weights[0, query]
    s, read = float(scores[key]), scores[shares != 0].tolist()
    listed = " + ".join(f"{each:.3f}" for each in read)
    match type(normalise).__name__:
        case "Softmax" | "TopK":
            powers = " + ".join(f"exp({each:.3f})" for each in read)
            return f"exp({s:.3f}) / ({powers}) = {math.exp(s) / sum(map(math.exp, read)):.3f}"
        case "Sparsemax":
            tau = (sum(read) - 1) / len(read)
            return f"τ = ({listed} - 1) / {len(read)} = {tau:.3f},  {_less(s, tau)} = {s - tau:.3f}"
        case "Entmax":
            power = normalise.fixed - 1
            tau = _threshold(scores[found.allowed[0, query]].tolist(), power)
            share = max(0.0, power * s - tau) ** (1 / power)
            return f"τ = {tau:.3f},  ({power:.1f}·{_less(s, tau)})^{1 / power:.1f} = {share:.3f}"
        case "Sigmoid":
            return f"1 / (1 + exp(-({s:.3f} + {normalise.bias:.3f}))) = {1 / (1 + math.exp(-s - normalise.bias)):.3f}"
        case "Identity":
            return f"s_k = {s:.3f}"
        case "SumToOne":
            return f"{s:.3f} / ({listed}) = {s / sum(read):.3f}"
        case other:
            return f"{other} gives for {s:.3f} among {line(scores)} = {float(shares[key]):.3f}"


def products(left: Tensor, right: Tensor) -> str:
    """A dot product, number by number; ends with the sum."""
    terms = [f"{one}·{other}" for one, other in zip(decimals(left), decimals(right), strict=True)]
    return f"{' + '.join(terms)} = {float(left @ right):.3f}"


def _threshold(scores: list[float], power: float) -> float:
    """The τ of entmax, at which Σ max(0, power·s - τ)^(1/power) = 1, halved towards: at most 1 below the best."""
    raised = [power * each for each in scores]
    low, high = max(raised) - 1, max(raised)
    for _ in range(50):
        middle = (low + high) / 2
        total = sum(max(0.0, each - middle) ** (1 / power) for each in raised)
        low, high = (middle, high) if total >= 1 else (low, middle)
    return low


def _side(score: Any, method: str, letter: str) -> str:
    """What a side of a score is called: the beginning of its docstring, "W q", or the call."""
    said = getattr(type(score), method).__doc__ or f"{method}({letter})"
    return said.partition(":")[0].partition("\n")[0].rstrip(".")


def _less(one: float, other: float) -> str:
    return f"{one:.3f} {'+' if other < 0 else '-'} {abs(other):.3f}"
