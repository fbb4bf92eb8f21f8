"""What a prediction costs. All losses are sums over the kept tokens, so that batches and their parts add up."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.data.batch import Batch, Padded, shifted
from regard.training.experiment import Loss

Logits = Float[Tensor, "batch time vocabulary"]
IGNORED = -100


def cross_entropy(logits: Logits, target: Padded, smoothing: float = 0.0) -> Float[Tensor, ""]:
    """How surprising the target is, with a share of its probability spread over the whole vocabulary.

        Σ_t  -(1 - ε) log p(y_t) - ε / V Σ_v log p(v)

    Szegedy et al. 2016, section 7, https://arxiv.org/abs/1512.00567
    """
    wanted = target.data.masked_fill(~target.keep, IGNORED)
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), wanted.flatten(), ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
    )


def entropy(logits: Logits, target: Padded) -> Float[Tensor, ""]:
    """How undecided the model is, over the kept tokens: Σ_t -Σ_v p(v) log p(v)."""
    log = logits.float().log_softmax(-1)
    return -(log.exp() * log).sum(-1).masked_fill(~target.keep, 0.0).sum()


def taught(logits: Logits, target: Padded, smoothing: float = 0.0, confidence: float = 0.0) -> Loss:
    """The loss of logits against a target, with label smoothing and a penalty for being too sure.

        cross_entropy - β entropy

    Pereyra et al. 2017, section 3, https://arxiv.org/abs/1701.06548
    `parts` has the plain cross-entropy as nll, which is what a perplexity is made of.
    """
    total = cross_entropy(logits, target, smoothing)
    with torch.no_grad():
        parts: dict[str, float | Tensor] = {"nll": cross_entropy(logits, target) if smoothing else total.detach()}
    if confidence:
        undecided = entropy(logits, target)
        total = total - confidence * undecided
        parts["entropy"] = undecided.detach()
    return Loss(total, target.keep.sum(), parts)


def teach(model: nn.Module, batch: Batch, *, smoothing: float = 0.0, confidence: float = 0.0, own: float = 0.0) -> Loss:
    """The loss of a model that is shown the target, or, at a share `own` of the steps, what it wrote itself."""
    if batch.target is None:
        raise ValueError("teach needs a batch with targets, and this one has only sources")
    fed = {"own": own} if own else {}
    step = model(batch.source, shifted(batch.target.data), **fed)
    return taught(step.output, batch.target, smoothing, confidence)


def perplexity(nll: float, tokens: int) -> float:
    """exp(nll / tokens): among how many equally likely tokens the model wavers."""
    try:
        return math.exp(nll / max(tokens, 1))
    except OverflowError:
        return math.inf
