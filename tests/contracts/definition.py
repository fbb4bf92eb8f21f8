"""attend() as the papers write it: one number at a time, in double precision, with nothing clever.

Each stage has its formula here under the name of its class, written apart from the code that it judges. A score is told the
`position` of the key and the `place` of the query.
"""

import cmath
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.attention.types import Attended
from regard.testing.cases import HEADS

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
                beside = READ.get(type(score).__name__, lambda *_: [0.0] * size)
                for i in range(size):
                    worth = [v[b][h][s][i] + beside(score, h, s, offset + t)[i] for s in seen]
                    context[b, h, t, i] = dot(shares, worth)
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


def alibi(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    """The slopes of two heads, as the contracts have them: 2^-4 and 2^-8."""
    return scaled_dot(score, h, q, k, position, place) - 2 ** (-8 * (h + 1) / HEADS) * abs(place - position)


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


def feature_map(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    features = {"elu": lambda x: x + 1 if x > 0 else math.exp(x), "relu": lambda x: max(0.0, x)}[score.phi]
    return dot([features(each) for each in q], [features(each) for each in k])


def location(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return times(matrix(score.W, h), q)[position]


def relative(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    a = matrix(score.a, h)[score.window + max(-score.window, min(score.window, position - place))]
    return scaled_dot(score, h, q, [one + other for one, other in zip(k, a, strict=True)], position, place)


def shaw(score: Any, h: int, position: int, place: int) -> Vector:
    """What is read beside a value, by its distance."""
    return [row[score.window + max(-score.window, min(score.window, position - place))] for row in matrix(score.b, h)]


def rotary(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    """Pairs as complex numbers, and the distance in their angle; a dimension that is left over is multiplied as it is."""
    pairs, products = len(q) // 2, [a * b for a, b in zip(q[len(q) // 2 * 2 :], k[len(k) // 2 * 2 :], strict=True)]
    for n in range(pairs):
        one, other = (2 * n, 2 * n + 1) if score.interleaved else (n, n + pairs)
        turn = cmath.exp(1j * (place - position) * score.base ** (-n / pairs))
        products.append((complex(q[one], q[other]) * complex(k[one], k[other]).conjugate() * turn).real)
    return sum(products) * (1 / math.sqrt(len(q)) if score.scale is None else score.scale)


def scaled_dot(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return dot(q, k) * (1 / math.sqrt(len(q)) if score.scale is None else score.scale)


def softcap(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    return score.cap * math.tanh(scaled_dot(score, h, q, k, position, place) / score.cap)


def t5(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    """Distances of a few positions, as the contracts have them, have a bucket each: 0, 1, 2, ... and after the query 17, ..."""
    far, b = abs(position - place), score.b.tolist()[h if len(score.b) > 1 else 0]
    assert far < 8, "in a farther bucket there is more than one distance"
    return score.scale * dot(q, k) + b[far + 16 if position > place else far]


def transformer_xl(score: Any, h: int, q: Vector, k: Vector, position: int, place: int) -> float:
    u, v = (bias[h if len(bias) > 1 else 0, 0].tolist() for bias in (score.u, score.v))
    angles = [(place - position) / 10_000 ** (2 * n / score.waves) for n in range(score.waves // 2)]
    R = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
    what = dot([a + b for a, b in zip(q, u, strict=True)], k)
    where = dot([a + b for a, b in zip(q, v, strict=True)], times(matrix(score.W, h), R))
    return (what + where) * (1 / math.sqrt(len(q)) if score.scale is None else score.scale)


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


def structured(normalise: Any, h: int, scores: Vector) -> Vector:
    """Every way for the keys to be in or out, weighed; the share of those that have key k in."""
    theta = normalise.transition[h if len(normalise.transition) > 1 else 0].tolist()
    weighs = {}
    for chain in itertools.product((0, 1), repeat=len(scores)):
        pairs = sum(theta[i][j] for i, j in itertools.pairwise(chain))
        weighs[chain] = math.exp(pairs + sum(each for each, inside in zip(scores, chain, strict=True) if inside))
    return [sum(w for chain, w in weighs.items() if chain[k]) / sum(weighs.values()) for k in range(len(scores))]


def hard(scores: Vector) -> Vector:
    """Without draws: the first of the largest."""
    return [float(s == scores.index(max(scores))) for s in range(len(scores))]


def sum_to_one(scores: Vector) -> Vector:
    positive = [max(0.0, each) for each in scores]
    return [each / sum(positive) if sum(positive) > 0 else 0.0 for each in positive]


def top_k(scores: Vector, k: int) -> Vector:
    """Of equal scores the earlier key wins."""
    best = sorted(range(len(scores)), key=lambda s: (-scores[s], s))[:k]
    shares = dict(zip(best, softmax([scores[s] for s in best]), strict=True))
    return [shares.get(s, 0.0) for s in range(len(scores))]


def document(scope: Any, b: int, q: int, k: int) -> bool:
    """Queries that stand where nobody numbered a document belong to none."""
    numbers = (scope.keys if scope.queries is None else scope.queries)[b].tolist()
    return q < len(numbers) and numbers[q] == int(scope.keys[b, k])


def landmark(scope: Any, b: int, p: int) -> bool:
    first = scope.first if isinstance(scope.first, int) else int(scope.first[b])
    return p < first or (scope.every > 0 and p % scope.every == 0)


SCORES: dict[str, Callable[..., float]] = {
    "Additive": additive,
    "Alibi": alibi,
    "Bilinear": bilinear,
    "Concat": concat,
    "Cosine": cosine,
    "Distance": distance,
    "Dot": lambda score, h, q, k, position, place: dot(q, k),
    "FeatureMap": feature_map,
    "Location": location,
    "Relative": relative,
    "Rotary": rotary,
    "ScaledDot": scaled_dot,
    "Shaw": relative,
    "Softcap": softcap,
    "T5": t5,
    "TransformerXl": transformer_xl,
}
READ: dict[str, Callable[..., Vector]] = {"Shaw": shaw}
"""What a score adds to the value of a key."""

NORMALISERS: dict[str, Callable[..., Vector]] = {
    "Entmax": lambda normalise, h, scores: entmax(scores, alpha_of(normalise, h)),
    "Gumbel": lambda normalise, h, scores: hard(scores),
    "Hard": lambda normalise, h, scores: hard(scores),
    "Identity": lambda normalise, h, scores: scores,
    "Marginal": lambda normalise, h, scores: softmax(scores),
    "Sigmoid": lambda normalise, h, scores: [1 / (1 + math.exp(-each - normalise.bias)) for each in scores],
    "Softmax": lambda normalise, h, scores: softmax(scores),
    "Sparsemax": lambda normalise, h, scores: entmax(scores, 2.0),
    "Structured": structured,
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
    "Document": document,
    "Everywhere": lambda scope, b, q, k: True,
    "Landmarks": lambda scope, b, q, k: any(landmark(scope, b, p) for p in (q, k)),
    "Local": lambda scope, b, q, k: -scope.window <= q - k <= scope.window,
    "LogSparse": lambda scope, b, q, k: abs(q - k) <= scope.local or math.log2(abs(q - k)).is_integer(),
    "Neighbourhood": lambda scope, b, q, k: all(
        abs(one - other) <= scope.window for one, other in zip(divmod(q, scope.width), divmod(k, scope.width), strict=True)
    ),
    "ExcludeSelf": lambda scope, b, q, k: k != q,
    "Padding": lambda scope, b, q, k: bool(scope.keep[b, k]),
    "Prefix": lambda scope, b, q, k: k < (scope.length if isinstance(scope.length, int) else int(scope.length[b])),
}
