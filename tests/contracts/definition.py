"""attend() as the papers write it: one number at a time, in double precision, with nothing clever.

Each stage has its formula here under the name of its class, written apart from the code that it judges. A score is told the
`position` of the key and the `place` of the query.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.attention.types import Attended

Vector = list[float]


def attend(query: Tensor, key: Tensor, value: Tensor, score: Any, normalise: Any, scope: Any, offset: int) -> Attended:
    """Context and weights, query by query."""
    (batch, heads, queries, _), (_, _, keys, size) = query.shape, value.shape
    weights = torch.zeros(batch, heads, queries, keys, dtype=torch.float64)
    context = torch.zeros(batch, heads, queries, size, dtype=torch.float64)
    q, k, v = query.tolist(), key.tolist(), value.tolist()
    for b in range(batch):
        for h in range(heads):
            for t in range(queries):
                seen = [s for s in range(keys) if sees(scope, b, offset + t, s)]
                scores = [defined(SCORES, score)(score, h, q[b][h][t], k[b][h][s], s, offset + t) for s in seen]
                shares = defined(NORMALISERS, normalise)(normalise, h, scores) if seen else []
                for s, share in zip(seen, shares, strict=True):
                    weights[b, h, t, s] = share
                for i in range(size):
                    context[b, h, t, i] = sum(share * v[b][h][s][i] for s, share in zip(seen, shares, strict=True))
    return Attended(context, weights)


def sees(scope: Any, b: int, q: int, k: int) -> bool:
    """Whether query q of row b may see key k."""
    return defined(SCOPES, scope)(scope, b, q, k)


def defined(definitions: dict[str, Callable[..., Any]], stage: Any) -> Callable[..., Any]:
    """The formula of a stage. A stage without one is new, and whoever added it writes it here too."""
    name = type(stage).__name__
    assert name in definitions, f"{name} has no definition: write its formula, in plain Python, into {__file__}"
    return definitions[name]


def dot(left: Vector, right: Vector) -> float:
    """Σ_i left_i right_i."""
    return sum(a * b for a, b in zip(left, right, strict=True))


def times(matrix: list[Vector], vector: Vector) -> Vector:
    """A matrix times a vector."""
    return [dot(row, vector) for row in matrix]


def matrix(linear: Any, head: int) -> list[Vector]:
    """The parameters of one head; where there is one set only, all heads share it."""
    return linear.weight[head if len(linear.weight) > 1 else 0].tolist()


def additive(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    together = zip(times(matrix(score.W, h), q), times(matrix(score.U, h), k), strict=True)
    return dot(matrix(score.v, h)[0], [math.tanh(a + b) for a, b in together])


def bilinear(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return dot(q, times(matrix(score.W, h), k))


def concat(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    hidden = times(matrix(score.W, h), q + k)
    return dot(matrix(score.v, h)[0], [math.tanh(each) for each in hidden] if score.tanh else hidden)


def cosine(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return score.scale * dot(q, k) / math.sqrt(dot(q, q) * dot(k, k))


def distance(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    variance = math.sqrt(len(q)) if score.sigma is None else score.sigma**2
    return -sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) / (2 * variance)


def location(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return times(matrix(score.W, h), q)[position]


def scaled_dot(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return dot(q, k) * (1 / math.sqrt(len(q)) if score.scale is None else score.scale)


def softmax(scores: Vector) -> Vector:
    powers = [math.exp(each - max(scores)) for each in scores]
    return [power / sum(powers) for power in powers]


def entmax(scores: Vector, alpha: float) -> Vector:
    """The threshold by halving the interval that holds it until nothing is left of it."""
    raised = [(alpha - 1) * each for each in scores]
    low, high = max(raised) - 1, max(raised)
    for _ in range(60):
        middle = (low + high) / 2
        total = sum(max(0.0, each - middle) ** (1 / (alpha - 1)) for each in raised)
        low, high = (middle, high) if total >= 1 else (low, middle)
    return [max(0.0, each - low) ** (1 / (alpha - 1)) for each in raised]


def alpha_of(normalise: Any, head: int) -> float:
    """Entmax's alpha: set, or learned for each head."""
    if normalise.raw is None:
        return normalise.fixed
    raw = normalise.raw.tolist()
    return 1 + 1 / (1 + math.exp(-raw[head if len(raw) > 1 else 0]))


def sum_to_one(scores: Vector) -> Vector:
    positive = [max(0.0, each) for each in scores]
    return [each / sum(positive) if sum(positive) > 0 else 0.0 for each in positive]


def top_k(scores: Vector, k: int) -> Vector:
    """Of equal scores the earlier key wins."""
    best = sorted(range(len(scores)), key=lambda s: (-scores[s], s))[:k]
    shares = dict(zip(best, softmax([scores[s] for s in best]), strict=True))
    return [shares.get(s, 0.0) for s in range(len(scores))]


SCORES: dict[str, Callable[..., float]] = {
    "Additive": additive,
    "Bilinear": bilinear,
    "Concat": concat,
    "Cosine": cosine,
    "Distance": distance,
    "Dot": lambda score, h, q, k, position, place: dot(q, k),
    "Location": location,
    "ScaledDot": scaled_dot,
}
NORMALISERS: dict[str, Callable[..., Vector]] = {
    "Entmax": lambda normalise, h, scores: entmax(scores, alpha_of(normalise, h)),
    "Identity": lambda normalise, h, scores: scores,
    "Sigmoid": lambda normalise, h, scores: [1 / (1 + math.exp(-each - normalise.bias)) for each in scores],
    "Softmax": lambda normalise, h, scores: softmax(scores),
    "Sparsemax": lambda normalise, h, scores: entmax(scores, 2.0),
    "SumToOne": lambda normalise, h, scores: sum_to_one(scores),
    "TopK": lambda normalise, h, scores: top_k(scores, normalise.k),
}
SCOPES: dict[str, Callable[..., bool]] = {
    "And": lambda scope, b, q, k: sees(scope.left, b, q, k) and sees(scope.right, b, q, k),
    "Or": lambda scope, b, q, k: sees(scope.left, b, q, k) or sees(scope.right, b, q, k),
    "Not": lambda scope, b, q, k: not sees(scope.inner, b, q, k),
    "Blocks": lambda scope, b, q, k: math.floor(q / scope.size) == math.floor(k / scope.size),
    "Causal": lambda scope, b, q, k: k <= q,
    "Dilated": lambda scope, b, q, k: abs(q - k) % scope.stride == 0,
    "Everywhere": lambda scope, b, q, k: True,
    "Local": lambda scope, b, q, k: -scope.window <= q - k <= scope.window,
    "Others": lambda scope, b, q, k: k != q,
    "Padding": lambda scope, b, q, k: bool(scope.keep[b, k]),
    "Prefix": lambda scope, b, q, k: k < (scope.length if isinstance(scope.length, int) else int(scope.length[b])),
}
