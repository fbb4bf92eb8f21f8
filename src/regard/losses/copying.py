"""Loss of a pointer-generator: the likelihood of a mixture of generating and copying, without its distribution.

The token of a target is the one that counts, so the attention is gathered at the places that hold it, and the projection
gives its log-probability a few rows at a time. Nothing of the size target x source x vocabulary exists, nor the logits of
all tokens.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.batch import Padded
from regard.losses.cross_entropy import Logits
from regard.losses.linear_cross_entropy import CHUNK_ROWS, GPU_CHUNK_ROWS, chunk_evenly, chunk_rows
from regard.losses.types import Loss
from regard.models.layers.pointer import CopyParts

FLOOR = 1e-10
"""Lower bound of the weight that a copied word gets, so that a sparse attention beside it costs no infinite loss."""


class TokenLogs(NamedTuple):
    """Log-probability of each row's token, and the mean over the vocabulary, for label smoothing."""

    target: Float[Tensor, " rows"]
    mean: Float[Tensor, " rows"]


def copying_loss(
    model: Any, hidden: Float[Tensor, "batch time size"], parts: CopyParts, target: Padded, smoothing: float = 0.0
) -> Loss:
    """Loss of what would be projected and the parts of a mixture: equals that of the mixture's distribution.

        -log (g P(y_t) + (1 - g) Σ_{s: x_s = y_t} a_ts)

    See, Liu and Manning 2017, eq. 9, https://arxiv.org/abs/1704.04368. A word outside the vocabulary has P = 0. Labels are
    smoothed over P alone, since an attention has no other words to share out to.
    """
    projection, table = model.decoder.output, model.decoder.embedding.table.weight
    matrix, vocabulary = projection.matrix(table), len(projection.bias)
    labels = target.data.flatten()
    listed = labels < vocabulary
    rows = projection.fit(hidden.flatten(0, 1))
    logs = compute_token_logs(rows, matrix, projection.bias, labels.where(listed, 0))
    own, other = (share.flatten() for share in parts.log_shares())
    generated = (own + logs.target).masked_fill(~listed, -torch.inf)
    copied = other + parts.copied_weight(target.data).flatten().clamp_min(FLOOR).log()
    return sum_loss(torch.logaddexp(generated, copied), logs.mean, target, smoothing)


def mixture_loss(logs: Logits, target: Padded, smoothing: float = 0.0) -> Loss:
    """Loss of the log-probabilities of a mixture, in which words that are not in a source are impossible."""
    logs = logs.float().log_softmax(-1)
    possible = logs > -torch.inf
    mean = logs.masked_fill(~possible, 0.0).sum(-1) / possible.sum(-1)
    gold = logs.gather(-1, target.data[..., None])[..., 0]
    return sum_loss(gold.flatten(), mean.flatten(), target, smoothing)


def sum_loss(gold: Float[Tensor, " rows"], mean: Float[Tensor, " rows"], target: Padded, smoothing: float) -> Loss:
    """Sums over the kept tokens: the smoothed loss, and the plain cross-entropy as nll."""
    keep = target.keep.flatten()
    nll = -gold.masked_fill(~keep, 0.0).sum()
    total = nll if not smoothing else (1 - smoothing) * nll - smoothing * mean.masked_fill(~keep, 0.0).sum()
    return Loss(total, keep.sum(), {"nll": nll.detach()})


def compute_token_logs(
    hidden: Float[Tensor, "rows size"],
    weight: Float[Tensor, "vocabulary size"],
    bias: Float[Tensor, " vocabulary"],
    target: Int[Tensor, " rows"],
) -> TokenLogs:
    """Log-probability of one token in each row of softmax(hidden weightᵀ + bias), differentiable, a few rows at a time."""
    return TokenLogs(*LinearLogProbability.apply(hidden, weight, bias, target))  # type: ignore[no-untyped-call]


class LinearLogProbability(torch.autograd.Function):
    """Autograd function that computes logits again in backward: they are larger than all that is kept of them.

    d logits = d_target (e_y - p) + d_mean (1 / V - p)
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        kind = hidden.device.type
        ctx.kinds = hidden.dtype, weight.dtype, bias.dtype
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        sums = torch.promote_types(bias.dtype, torch.float32)
        gold, mean, lse = (hidden.new_empty(len(hidden), dtype=sums) for _ in range(3))
        with torch.autocast(kind, enabled=False):
            for rows in split_rows(hidden):
                logits = (hidden[rows] @ weight.mT).to(sums) + bias
                lse[rows] = logits.logsumexp(-1)
                gold[rows] = logits.gather(1, target[rows, None])[:, 0] - lse[rows]
                mean[rows] = logits.mean(-1) - lse[rows]
        ctx.save_for_backward(hidden, weight, bias, target, lse)
        return gold, mean

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_gold: Tensor, d_mean: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, target, lse = ctx.saved_tensors
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight, dtype=lse.dtype)
        d_bias = torch.zeros_like(bias, dtype=lse.dtype)
        with torch.autocast(hidden.device.type, enabled=False):
            for rows in split_rows(hidden):
                logits = (hidden[rows] @ weight.mT).to(lse.dtype) + bias
                sums = d_gold[rows, None] + d_mean[rows, None]
                d_logits = (logits - lse[rows, None]).exp_().mul_(-sums).add_(d_mean[rows, None] / len(bias))
                d_logits.scatter_add_(1, target[rows, None], d_gold[rows, None])
                d_bias += d_logits.sum(0)
                d_logits = d_logits.to(hidden.dtype)
                d_hidden[rows] = d_logits @ weight
                d_weight += d_logits.mT @ hidden[rows]
        kinds = ctx.kinds
        return d_hidden.to(kinds[0]), d_weight.to(kinds[1]), d_bias.to(kinds[2]), None


def split_rows(hidden: Float[Tensor, "rows size"]) -> list[slice]:
    """Slices of rows whose logits are computed together."""
    kind = hidden.device.type
    return chunk_rows(len(hidden), CHUNK_ROWS[kind]) if kind in CHUNK_ROWS else chunk_evenly(len(hidden), GPU_CHUNK_ROWS)
