"""Cross-entropy of tokens with label smoothing and a confidence penalty, from logits or fused with the output projection."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.data.batch import Padded
from regard.losses.linear_cross_entropy import linear_cross_entropy
from regard.losses.types import Loss
from regard.models.output_heads.projection import Projection

Logits = Float[Tensor, "batch time vocabulary"]
IGNORED = -100


def cross_entropy(logits: Logits, target: Padded, smoothing: float = 0.0) -> Float[Tensor, ""]:
    """Cross-entropy with label smoothing, summed over the kept tokens.

        Σ_t  -(1 - ε) log p(y_t) - ε / V Σ_v log p(v)

    Szegedy et al. 2016, section 7, https://arxiv.org/abs/1512.00567
    """
    labels = target.data.masked_fill(~target.keep, IGNORED)
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
    )


def entropy(logits: Logits, target: Padded) -> Float[Tensor, ""]:
    """Entropy of the predicted distributions, summed over the kept tokens: Σ_t -Σ_v p(v) log p(v)."""
    log_probabilities = logits.float().log_softmax(-1)
    return -(log_probabilities.exp() * log_probabilities).sum(-1).masked_fill(~target.keep, 0.0).sum()


def likelihood_loss(logits: Logits, target: Padded, smoothing: float = 0.0, confidence: float = 0.0) -> Loss:
    """Loss of logits against a target, with label smoothing and a confidence penalty.

        cross_entropy - β entropy

    Pereyra et al. 2017, section 3, https://arxiv.org/abs/1701.06548
    `parts` has the plain cross-entropy as nll, from which perplexity is computed.
    """
    total = cross_entropy(logits, target, smoothing)
    with torch.no_grad():
        parts: dict[str, float | Tensor] = {"nll": cross_entropy(logits, target) if smoothing else total.detach()}
    if confidence:
        total_entropy = entropy(logits, target)
        total = total - confidence * total_entropy
        parts["entropy"] = total_entropy.detach()
    return Loss(total, target.keep.sum(), parts)


def fused_likelihood_loss(
    model: Any, hidden: Float[Tensor, "batch time size"], target: Padded, smoothing: float, confidence: float
) -> Loss:
    """Fused linear + cross-entropy: equals `likelihood_loss` of the projected hidden states, a few rows at a time.

    Only kept tokens are projected, except on a GPU, where counting them would synchronise.
    """
    projection, table, keep = model.decoder.output, model.decoder.embedding.table.weight, None
    labels = target.data
    if hidden.is_cuda:
        hidden, labels, keep = hidden.flatten(0, 1), labels.flatten(), target.keep.flatten()
    else:
        hidden, labels = hidden[target.keep], labels[target.keep]
    cost = linear_cross_entropy(
        projection.fit(hidden), projection.matrix(table), projection.bias, labels, smoothing, confidence, keep
    )
    parts = {"nll": cost.nll} | ({"entropy": cost.entropy} if confidence else {})
    return Loss(cost.total, target.keep.sum(), parts)


def is_fusable(model: nn.Module) -> bool:
    """Return True if a fused loss can replace a model's projection: a plain one, or one that is mixed with copies."""
    decoder = getattr(model, "decoder", None)
    outcome = getattr(decoder, "outcome", None)
    return isinstance(getattr(decoder, "output", None), Projection) and (outcome is None or outcome.fusable)
