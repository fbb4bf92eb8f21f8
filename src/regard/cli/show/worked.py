"""Arithmetic of one score and one weight, written out step by step."""

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from regard.attention.per_head import repeat_heads
from regard.attention.score import is_positional
from regard.attention.score.alibi import compute_slopes
from regard.cli.show.example import Example, Stages
from regard.cli.show.table import decimals, line


def work_out_score(example: Example, result: Stages) -> list[list[str]]:
    """Arithmetic of one score, a line for each step; the last ends with the score."""
    query, key = result.pair
    request, score, cell = example.request, example.request.score, result.scores[0, query, key]
    q, k = request.query[-1, 0, query], repeat_heads(example.key, len(result.scores))[-1, 0, key]
    left, right = q, repeat_heads(request.keys, len(result.scores))[-1, 0, key]
    if hasattr(score, "project"):
        where = (request.offset,) if is_positional(score) else ()
        left = score.project(request.query, *where)[-1, 0, query]
    right = right[: len(left)] if type(score).__name__ == "ChunkEnergy" else right  # the other half is that of the chunk
    rows = [["q", line(q)], ["k", line(k)]]
    sides = (
        _side(score, "project", "q") if not left.equal(q) else "q",
        _side(score, "prepare", "k") if not right.equal(k) else "k",
    )
    rows += [[side, line(numbers)] for side, numbers in zip(sides, (left, right), strict=True) if side not in ("q", "k")]
    if example.coverage_keys:
        right = example.coverage_keys[query][-1, 0, key]
        rows.append([_side(example.module, "add_coverage", "k"), line(right)])
    if more := _beyond(score, result, left, right, sides):
        return [*rows, *more]
    if left.shape == right.shape and torch.isclose(left @ right, cell):
        return [*rows, [" · ".join(sides), products(left, right)]]
    if hasattr(score, "v") and left.shape == right.shape:
        bent, v = torch.tanh(left + right), score.v.weight[0, 0]
        return [*rows, ["tanh of their sum", line(bent)], ["v", line(v)], ["vᵀ tanh", products(v, bent)]]
    if hasattr(score, "sigma"):
        gap, variance = q - k, math.sqrt(len(q)) if score.sigma is None else score.sigma**2
        worked = f"-{float(gap @ gap):.3f} / (2 · {variance:.3f}) = {-float(gap @ gap) / 2 / variance:.3f}"
        return [*rows, ["q - k", line(gap)], ["‖q - k‖²", products(gap, gap)], ["score", worked]]
    return [rows[0], ["for each key", line(result.scores[0, query])], [f"at position {key}", f"= {float(cell):.3f}"]]


def work_out_weight(normalise: Any, result: Stages) -> str:
    """Arithmetic of one weight from the scores of its query; ends with the weight."""
    query, key = result.pair
    scores, shares = result.scores[0, query], result.weights[0, query]
    s, read = float(scores[key]), scores[shares != 0].tolist()
    listed = " + ".join(f"{number:.3f}" for number in read)
    match type(normalise).__name__:
        case "Softmax" | "Marginal" | "TopK":
            powers = " + ".join(f"exp({number:.3f})" for number in read)
            return f"exp({s:.3f}) / ({powers}) = {math.exp(s) / sum(map(math.exp, read)):.3f}"
        case "Sparsemax":
            tau = (sum(read) - 1) / len(read)
            return f"τ = ({listed} - 1) / {len(read)} = {tau:.3f},  {_less(s, tau)} = {s - tau:.3f}"
        case "Entmax":
            power = normalise.fixed - 1
            tau = _threshold(scores[result.allowed[0, query]].tolist(), power)
            share = max(0.0, power * s - tau) ** (1 / power)
            return f"τ = {tau:.3f},  ({power:.1f}·{_less(s, tau)})^{1 / power:.1f} = {share:.3f}"
        case "Sigmoid":
            return f"1 / (1 + exp(-({s:.3f} + {normalise.bias:.3f}))) = {1 / (1 + math.exp(-s - normalise.bias)):.3f}"
        case "Hard" | "Gumbel":
            allowed_scores = scores[result.allowed[0, query]]
            highest = float(allowed_scores.max())
            return f"max({', '.join(decimals(allowed_scores))}) = {highest:.3f} gets all = {float(s == highest):.3f}"
        case "GaussianWindow":
            bell = normalise.bell(len(scores))[-1, query]
            alone = work_out_weight(normalise.inner, result._replace(weights=result.weights / bell))
            power = f"exp(-({key} - {normalise.centre[-1, query]:.3f})² / (2 · {normalise.width / 2:g}²))"
            return f"{alone},  {alone.rpartition('= ')[2]} · {power} = {float(shares[key]):.3f}"
        case "Identity":
            return f"s_k = {s:.3f}"
        case "Structured":
            allowed = result.allowed[0, query]
            return _chains(normalise.transition[0].tolist(), scores[allowed].tolist(), int(allowed[:key].sum()))
        case "MonotonicNormaliser" | "ChunkNormaliser":
            return _walk(normalise, result)
        case "SumToOne":
            return f"{s:.3f} / ({listed}) = {s / sum(read):.3f}"
        case other:
            return f"{other} gives for {s:.3f} among {line(scores)} = {float(shares[key]):.3f}"


def _chains(theta: list[list[float]], scores: list[float], key: int) -> str:
    """Marginal probability of a key over all subsets of keys."""
    weighs = {}
    for chain in itertools.product((0, 1), repeat=len(scores)):
        pairs = sum(theta[i][j] for i, j in itertools.pairwise(chain))
        weighs[chain] = math.exp(pairs + sum(s for s, inside in zip(scores, chain, strict=True) if inside))
    inside = {"".join(map(str, chain)): weigh for chain, weigh in weighs.items() if chain[key]}
    total, listed = sum(weighs.values()), " + ".join(f"{weigh:.3f} ({chain})" for chain, weigh in inside.items())
    return f"({listed}) / {total:.3f}, the sum of all {len(weighs)} = {sum(inside.values()) / total:.3f}"


def _walk(normalise: Any, result: Stages) -> str:
    """Monotonic attention: the selected key, and the weight of a key there or in the chunk that ends there."""
    query, key = result.pair
    start, stop, keys = 0, 0, result.scores.shape[-1]
    for row in result.scores[0, : query + 1].masked_fill(~result.allowed[0, : query + 1], -1.0).tolist():
        start, stop = stop, next((place for place in range(stop, keys) if row[place] > 0), keys)
    if stop == keys:
        return f"from key {start} on no score is above 0, so nothing is read = 0.000"
    selection = f"the first score above 0 from key {start} on is {result.scores[0, query, stop]:.3f} at key {stop}"
    if type(normalise).__name__ == "MonotonicNormaliser":
        return f"{selection}, which gets all = {float(key == stop):.3f}"
    chunk = normalise.energies[-1, 0, query, max(0, stop + 1 - normalise.width) : stop + 1]
    powers, u = " + ".join(f"exp({decimal})" for decimal in decimals(chunk)), float(normalise.energies[-1, 0, query, key])
    return f"{selection}; its chunk: exp({u:.3f}) / ({powers}) = {math.exp(u) / float(chunk.exp().sum()):.3f}"


def _beyond(score: Any, result: Stages, left: Tensor, right: Tensor, sides: tuple[str, str]) -> list[list[str]]:
    """Lines of a score with a term beside the dot product; none for any other."""
    query, key = result.pair
    name, away = " · ".join(sides), key - query
    match type(score).__name__:
        case "Softcap":
            x, cap = float(left @ right), score.cap
            return [
                [name, products(left, right)],
                ["score", f"{cap:g} tanh({x:.3f} / {cap:g}) = {cap * math.tanh(x / cap):.3f}"],
            ]
        case "Energy" | "ChunkEnergy":
            bent, v, r = torch.tanh(left + right), score.v.weight[0, 0], float(score.r[0])
            x, g, length = float(v @ bent), float(score.g[0]), float(v.norm())
            scaled = g * x / length
            return [
                ["tanh of their sum", line(bent)],
                ["v", line(v)],
                ["vᵀ tanh", products(v, bent)],
                ["times g / ‖v‖", f"{g:.3f}·{x:.3f} / {length:.3f} = {scaled:.3f}"],
                ["and r", f"{_less(scaled, -r)} = {scaled + r:.3f}"],
            ]
        case "Alibi":
            x, m = float(left @ right), compute_slopes(len(result.scores))[0]
            worked = f"{x:.3f} - {m:.4f}·{abs(away)} = {x - m * abs(away):.3f}"
            return [[name, products(left, right)], [f"less m·{abs(away)}", worked]]
        case "T5":
            x, bucket = float(left @ right), int(score.bucket(torch.tensor(away)))
            b = float(score.b[0, bucket])
            worked = f"{_less(x, -b)} = {x + b:.3f}"
            return [[name, products(left, right)], [f"bucket({away})", f"= {bucket}"], [f"and b[{bucket}]", worked]]
        case "Relative" | "Shaw":
            a = score.a.weight[0, score.window + max(-score.window, min(score.window, away))]
            return [[f"a_{away}", line(a)], [f"{sides[0]} · (k + a_{away})", products(left, right + a)]]
    return []


def products(left: Tensor, right: Tensor) -> str:
    """A dot product, number by number; ends with the sum."""
    terms = [f"{one}·{other}" for one, other in zip(decimals(left), decimals(right), strict=True)]
    return f"{' + '.join(terms)} = {float(left @ right):.3f}"


def _threshold(scores: list[float], power: float) -> float:
    """The τ of entmax, at which Σ max(0, power·s - τ)^(1/power) = 1, by bisection, at most 1 below the largest score."""
    raised = [power * score for score in scores]
    low, high = max(raised) - 1, max(raised)
    for _ in range(50):
        middle = (low + high) / 2
        total = sum(max(0.0, number - middle) ** (1 / power) for number in raised)
        low, high = (middle, high) if total >= 1 else (low, middle)
    return low


def _side(score: Any, method: str, letter: str) -> str:
    """Name of a side of a score: the beginning of its docstring, "W q", or the call."""
    said = getattr(type(score), method).__doc__ or f"{method}({letter})"
    return said.partition(":")[0].partition("\n")[0].rstrip(".")


def _less(one: float, other: float) -> str:
    return f"{one:.3f} {'+' if other < 0 else '-'} {abs(other):.3f}"
