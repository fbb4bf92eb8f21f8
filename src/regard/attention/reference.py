"""Work of the reference: operators of PyTorch over all pairs of a query and a key, by the kinds of the stages."""

import torch

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.types import Request
from regard.attention.workload import Workload, measure_workload

NAME = "reference"
SCORES = {
    "Dot": "product",
    "ScaledDot": "product",
    "Bilinear": "product",
    "Cosine": "product",
    "Rotary": "product",
    "TransformerXl": "product",
    "Additive": "additive",
    "Concat": "additive",
    "T5": "bias",
    "Alibi": "bias",
    "FeatureMap": "features",
}
"""Kinds of scores, whose operators take about as long."""
NORMALISERS = {"Softmax": "softmax", "Entmax": "entmax", "Sparsemax": "sparsemax", "SumToOne": "ratio"}
PROJECTED = ("Bilinear", "Cosine", "Rotary", "TransformerXl")
"""Scores that project queries or keys by operators of their own, whatever computes the rest."""
PASSES = {"additive": 2, "bias": 3}
"""Matrices of pairs that a score holds at once; one for the others."""


def count_work(request: Request) -> Work:
    """Operators over all pairs, and over all hidden units of an additive score."""
    workload = measure_workload(request)
    score = SCORES.get(type(request.score).__name__, "product")
    normaliser = find_normaliser(request)
    masked = workload.mask > 0
    hidden = workload.pairs * workload.size if score == "additive" else 0
    counts = {
        "products": workload.pairs * ((0 if hidden else workload.size) + workload.value) / 1e6,
        "elements": workload.pairs / 1e6,
        "hidden": hidden / 1e6,
        "bytes": (workload.inputs + workload.output) / 1e6,
        "masked": workload.pairs * masked / 1e6,
        "mask": workload.mask / 1e6,
        "mask_call": float(masked),
        "repeated": workload.inputs / 1e6 if workload.key_heads not in (1, workload.heads) else 0.0,
        "dropped": workload.pairs * workload.dropout / 1e6,
        "dropout_call": float(workload.dropout),
        "measured": len(workload.statistics) * workload.pairs / 1e6,
        "measure_call": float(len(workload.statistics)),
        **count_projection(request),
    }
    memory = _count_bytes(workload, score, normaliser)
    return Work(f"{score}/{normaliser}/{workload.precision}/{workload.gradient}", counts, memory)


def count_projection(request: Request) -> dict[str, float | int]:
    """Counts of the operators by which a score projects queries and keys."""
    name, workload = type(request.score).__name__, measure_workload(request)
    if name not in PROJECTED:
        return {}
    return {f"{name}_call": 1.0, f"{name}_bytes": workload.inputs / 1e6}


def find_normaliser(request: Request) -> str:
    """Kind of the normaliser of a request."""
    return NORMALISERS.get(type(request.normalise).__name__, "softmax")


def _count_bytes(workload: Workload, score: str, normaliser: str) -> int:
    """Bytes of the matrices of pairs that exist at once."""
    trained = workload.gradient != "forward"
    matrices = PASSES.get(score, 1) + (6 if normaliser in ("entmax", "sparsemax") else 1)
    matrices += trained + workload.dropout + 2 * bool(workload.statistics)
    memory = workload.output + workload.pairs * workload.element * matrices + 2 * workload.mask
    memory += workload.pairs * (workload.mask > 0)
    if score == "additive":
        memory += workload.pairs * workload.size * workload.element * (3 if trained else 2)
    return memory


def cost(request: Request) -> float:
    """Estimated microseconds of the reference, and of its backward where there is one.

    Infinite for additive scores in float16, whose sums overflow here and not in the kernels, which sum in float32.
    """
    if request.query.dtype == torch.float16 and SCORES.get(type(request.score).__name__) == "additive":
        return float("inf")
    return estimate_microseconds(NAME, count_work(request), request.query.device)
