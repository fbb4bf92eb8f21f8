"""What a model of glimpses costs: what it said, where it looked, and what reward it expected."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.losses.types import Loss
from regard.tasks.classify.glimpse_model import Glimpsed


def glimpses(found: Glimpsed, wanted: Int[Tensor, " batch"], steering: float = 1.0, smoothing: float = 0.0) -> Loss:
    """The cross-entropy of what was said, REINFORCE for where was looked, and the square of each surprise.

        R = 1 where the answer is right, else 0
        Σ -log p(y)  -  Σ_t (R - b_t) log π(l_t)  +  Σ_t (R - b_t)² / steps

    Mnih et al. 2014, https://arxiv.org/abs/1406.6247; Williams 1992, https://doi.org/10.1007/BF00992696
    The baseline b_t is trained by its own term alone, and `steering` weighs the second. Several copies of a picture in one
    batch are the paper's M runs of it. What only steers adds to the gradient and 0 to the figure.
    """
    right = (found.logits.argmax(-1) == wanted).to(torch.float32)
    said = F.cross_entropy(found.logits.float(), wanted, reduction="sum", label_smoothing=smoothing)
    surprise = right[:, None] - found.baselines.float()
    steered = -(surprise.detach() * found.logs.float()).sum()
    expected = surprise.square().mean(1).sum()
    total = said + steering * (steered - steered.detach()) + expected
    parts: dict[str, float | Tensor] = {"nll": said.detach(), "right": right.sum(), "surprise": expected.detach()}
    return Loss(total, len(wanted), parts)


def averaged(logits: Float[Tensor, "runs batch labels"]) -> Float[Tensor, "batch labels"]:
    """The log of the mean probability over several runs, each with its own glimpses."""
    return logits.float().log_softmax(-1).logsumexp(0) - torch.tensor(float(logits.shape[0])).log()
