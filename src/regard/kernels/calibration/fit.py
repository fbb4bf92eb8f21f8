"""Fit of the cost model's coefficients to measured times.

The coefficients of a variant minimise the mean of |log(estimate / time)|, rounded near zero, over its rows, all positive. A
weak prior, what such a count takes on such a device by order of magnitude, decides where rows say nothing. Where there are
few rows, those of the same path under the same gradient decide, and one factor is fitted.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.cost import Profile

FEWEST = 12
"""Rows from which on a variant has coefficients of its own."""
STEPS, RATE = 600, 0.05
SMALLEST = 1e-9
WEIGHT = 0.3
"""Weight of the prior, in rows for each squared factor of e."""
PRIORS = {
    "cpu": {"products": 15.0, "elements": 800.0, "hidden": 1000.0, "bytes": 150.0, "call": 20.0, "other": 500.0},
    "cuda": {"products": 0.01, "elements": 0.25, "hidden": 0.25, "bytes": 0.4, "call": 80.0, "other": 0.3},
    "cuda reference": {"products": 0.01, "elements": 8.0, "hidden": 5.0, "bytes": 1.0, "call": 150.0, "other": 4.0},
}
"""Microseconds of a million of each count, and of a call; the reference writes all pairs to memory."""
CALLS = {"cpu": 10.0, "cuda": 20.0}
"""Microseconds of a count of calls."""
IN_CALLS = frozenset(("blocks", "chunks", "tasks", "depth", "strips", "documents", "heads"))
OVERLAP = {"cuda": 3.0, "cpu": 1.0}
"""The exponent of the cost model: on a GPU the host queues while the device computes."""


class Row(NamedTuple):
    """One measurement: a path for a request, its counts, and the microseconds that it took."""

    path: str
    variant: str
    counts: dict[str, float]
    microseconds: float


def fit_profile(device: str, rows: Iterable[Row], kind: str) -> Profile:
    """The profile of a device of a kind, cpu or cuda, from its rows."""
    overlap = OVERLAP[kind]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.path, row.variant), []).append(row)
    paths: dict[str, dict[str, dict[str, float]]] = {}
    for (path, variant), own in sorted(groups.items()):
        if len(own) >= FEWEST:
            coefficients = fit_coefficients(own, kind)
        else:
            gradient = variant.rpartition("/")[2]
            alike = [
                row for (name, other), rows in groups.items() if name == path and other.endswith(gradient) for row in rows
            ]
            coefficients = _scale(fit_coefficients(alike, kind), own, overlap)
        paths.setdefault(path, {})[variant] = coefficients
    return Profile(device, overlap, paths)


def fit_coefficients(rows: list[Row], kind: str) -> dict[str, float]:
    """Coefficients of one variant."""
    overlap, priors = OVERLAP[kind], PRIORS.get(f"{kind} {rows[0].path}", PRIORS[kind])
    names = sorted({name for row in rows for name, count in row.counts.items() if count > 0})
    times = torch.tensor([row.microseconds for row in rows], dtype=torch.float64)
    counts = torch.tensor([[row.counts.get(name, 0.0) for name in names] for row in rows], dtype=torch.float64)
    counts = counts.reshape(len(rows), len(names))
    expected = [
        CALLS[kind] if name in IN_CALLS or name.endswith("_call") else priors.get(name, priors["other"]) for name in names
    ]
    prior = torch.tensor([min(priors["call"], float(times.min())), *expected], dtype=torch.float64).log()
    logs = prior.clone().requires_grad_()
    optimizer = torch.optim.Adam([logs], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        error = estimate(logs, counts, overlap).log() - times.log()
        loss = (error.square() + 0.01).sqrt().mean() + 0.2 * error.square().mean()
        loss = loss + WEIGHT * 0.1 * (logs - prior).square().sum() / len(rows)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    values = logs.detach().exp().tolist()
    fitted = {"call": values[0], **dict(zip(names, values[1:], strict=True))}
    return {name: float(f"{value:.5g}") for name, value in fitted.items() if value > SMALLEST}


def estimate(logs: Tensor, counts: Tensor, overlap: float) -> Tensor:
    """The cost model with coefficients by their logarithms, the call first."""
    call, device = logs[0].exp(), counts @ logs[1:].exp() + 1e-12
    return call + device if overlap == 1 else (call**overlap + device**overlap) ** (1 / overlap)


def _scale(coefficients: dict[str, float], rows: list[Row], overlap: float) -> dict[str, float]:
    """Coefficients times the factor that fits a few rows."""
    estimator = Profile("", overlap, {})
    factors = []
    for row in rows:
        work = sum(coefficients.get(name, 0.0) * count for name, count in row.counts.items())
        call = coefficients.get("call", 0.0)
        total = call + work if estimator.overlap == 1 else (call**overlap + work**overlap) ** (1 / overlap)
        factors.append(row.microseconds / max(total, 1e-9))
    middle = sorted(factors)[len(factors) // 2]
    factor = middle ** (len(rows) / (len(rows) + 3))  # few rows say little
    return {name: float(f"{value * factor:.5g}") for name, value in coefficients.items()}
