"""Stacking: how far each member of an ensemble is to be trusted, learned on records that none was trained on.

Wolpert 1992, https://doi.org/10.1016/S0893-6080(05)80023-1, with the simplest model of models: a weight for each.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.batch import shifted
from regard.data.modality import AnyBatch
from regard.data.table import Record
from regard.decoding.logprobs import compute_logprobs
from regard.decoding.score import rate
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor

LEAST = -100.0
"""The lowest log-probability that counts: what a member finds impossible it finds very unlikely."""
PASSES, ITERATIONS, ENOUGH = 20, 10_000, 1e-9
"""The most passes over the records for logits, the most steps for probabilities, and a gain a token that is none."""


class Stacking(NamedTuple):
    """Weights that sum to one, and what a token costs (its mean -log p) with equal ones and with these."""

    weights: list[float]
    equal: float
    learned: float


class Slope(NamedTuple):
    """The cost of a token at some weights, and its first and second derivative there."""

    cost: float
    gradient: Float[Tensor, " members"]
    curvature: Float[Tensor, "members members"]


def stack(members: "Sequence[SequencePredictor]", records: Sequence[Record], average: str = "probabilities") -> Stacking:
    """The weights under which an average finds the targets of these records likeliest; both problems are convex."""
    if average not in ("probabilities", "logits"):
        raise ValueError(f"stacking is for averages of probabilities or logits, got {average!r}; give weights yourself")
    batches = list(_batches(members[0], records, len(members)))
    if average == "probabilities":
        return mixture(torch.cat([_rated(members, batch) for batch in batches], dim=1))
    return log_linear(members, batches)


def mixture(logs: Float[Tensor, "members tokens"]) -> Stacking:
    """Weights of a mean of probabilities, from the log-probability that each member gave each right token.

        w_k <- 1/N Σ_n  w_k p_kn / Σ_j w_j p_jn

    The EM algorithm, Dempster, Laird and Rubin 1977, https://doi.org/10.1111/j.2517-6161.1977.tb01600.x: no step makes the
    tokens less likely, and from weights above 0 it comes to the best there are.
    """
    logs = logs.double().clamp_min(LEAST)
    weights, costs = logs.new_full((len(logs),), 1 / len(logs)), list[float]()
    for _ in range(ITERATIONS):
        shared = logs + weights.log()[:, None]
        total = shared.logsumexp(0)
        costs.append(-total.mean().item())
        if len(costs) > 1 and costs[-2] - costs[-1] < ENOUGH:
            break
        weights = (shared - total).exp().mean(1)
    return Stacking(weights.tolist(), costs[0], costs[-1])


def log_linear(members: "Sequence[SequencePredictor]", batches: Sequence[AnyBatch]) -> Stacking:
    """Weights of a mean of logits, by a few of Newton's steps, each of one pass over the records.

        cost(w) = mean_n  log Σ_y exp(Σ_k w_k l_kny) - Σ_k w_k l_kn,right
        gradient = mean_n  E[l] - l_right,    curvature = mean_n Cov[l]      under the average's own distribution

    w = softmax(θ) keeps them shares; a step that does not pay is tried again, shorter (Levenberg and Marquardt).
    """
    theta, damping = torch.zeros(len(members), dtype=torch.float64), 1e-3
    here = first = _slope(members, batches, theta.softmax(0))
    for _ in range(PASSES):
        weights = theta.softmax(0)
        turn = weights.diag() - weights.outer(weights)  # dw / dθ
        bent = turn @ here.curvature @ turn
        damped = bent + damping * (bent.trace() + ENOUGH) * torch.eye(len(members), dtype=torch.float64)
        step = -torch.linalg.solve(damped, turn @ here.gradient)
        ahead = _slope(members, batches, (theta + step).softmax(0))
        gain = here.cost - ahead.cost
        damping = damping / 10 if gain > 0 else damping * 10
        if gain > 0:
            theta, here = theta + step, ahead
        if abs(gain) < ENOUGH:
            break
    return Stacking(theta.softmax(0).tolist(), first.cost, here.cost)


def _batches(first: "SequencePredictor", records: Sequence[Record], members: int) -> Iterator[AnyBatch]:
    """The records as batches with targets, where they are computed with; what many members say takes more room."""
    if not records or any(record.target is None for record in records):
        raise DataError(f"stacking learns from records with targets, got {len(records)} records, not all with one")
    prepared = [first.task.prepare(record) for record in records]
    examples = first.codec.encode_all(prepared, over_long="truncate").examples
    device = next(first.model.parameters()).device
    for _, batch in first.codec.loader(examples, max(1, first.config.data.budget // members)).in_order():
        yield batch.to(device)


def _rated(members: "Sequence[SequencePredictor]", batch: AnyBatch) -> Float[Tensor, "members tokens"]:
    """Log-probabilities of the target tokens by each member."""
    assert batch.target is not None, "records have targets"
    keep = batch.target.keep.cpu()
    with torch.no_grad():
        models: list[Any] = [member.model for member in members]
        memories = [model.encode(batch.source) for model in models]
    rated = [rate(member.model.decoder, memory, batch.target) for member, memory in zip(members, memories, strict=True)]
    return torch.stack([rating.logprobs[keep] for rating in rated])


@torch.no_grad()
def _slope(members: "Sequence[SequencePredictor]", batches: Sequence[AnyBatch], weights: Float[Tensor, " members"]) -> Slope:
    """The cost a token and its derivatives, batch by batch: whole distributions are large."""
    cost, gradient, tokens = 0.0, torch.zeros_like(weights), 0
    curvature = torch.zeros(len(weights), len(weights), dtype=weights.dtype)
    for batch in batches:
        assert batch.target is not None, "records have targets"
        keep, fed = batch.target.keep, shifted(batch.target.data)
        outputs = [member.model(batch.source, fed).output[keep] for member in members]
        logs = torch.stack([compute_logprobs(output).clamp_min(LEAST) for output in outputs])
        mixture = moments(logs, batch.target.data[keep], weights.to(logs))
        cost, tokens = cost + mixture.cost, tokens + int(keep.sum())
        gradient, curvature = gradient + mixture.gradient.cpu(), curvature + mixture.curvature.cpu()
    return Slope(cost / tokens, gradient / tokens, curvature / tokens)


def moments(
    logs: Float[Tensor, "members tokens vocabulary"], wanted: Int[Tensor, " tokens"], weights: Float[Tensor, " members"]
) -> Slope:
    """The cost of some tokens and its derivatives, summed, from what each member thinks of every token."""
    mixed = torch.einsum("k,knv->nv", weights, logs)
    total = mixed.logsumexp(-1)
    shared = logs * (mixed - total[:, None]).exp()  # p l
    mean = shared.sum(-1).double()  # members tokens
    right = logs.gather(-1, wanted[None, :, None].expand(len(logs), -1, 1))[..., 0].double()
    cost = total.double().sum() - (weights.double() @ right).sum()
    second = (shared.flatten(1) @ logs.flatten(1).mT).double() - mean @ mean.mT
    return Slope(cost.item(), (mean - right).sum(1), second)
