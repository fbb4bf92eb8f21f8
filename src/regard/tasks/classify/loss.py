"""Loss of the recurrent attention model: cross-entropy, REINFORCE, and the baseline."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.losses.types import Loss
from regard.tasks.classify.glimpse_model import GlimpseOutput


def reinforce_loss(
    output: GlimpseOutput, labels: Int[Tensor, " batch"], reinforce_weight: float = 1.0, smoothing: float = 0.0
) -> Loss:
    """Cross-entropy of the labels, REINFORCE for the locations of the glimpses, and the squared error of the baseline.

        R = 1 where the answer is right, else 0
        Σ -log p(y)  -  Σ_t (R - b_t) log π(l_t)  +  Σ_t (R - b_t)² / steps

    Mnih et al. 2014, https://arxiv.org/abs/1406.6247; Williams 1992, https://doi.org/10.1007/BF00992696
    The baseline b_t is trained by its own term alone, and `reinforce_weight` weighs the second. Several copies of a picture
    in one batch are the paper's M episodes. The REINFORCE term has a gradient, and adds 0 to the value.
    """
    right = (output.logits.argmax(-1) == labels).to(torch.float32)
    nll = F.cross_entropy(output.logits.float(), labels, reduction="sum", label_smoothing=smoothing)
    advantage = right[:, None] - output.baselines.float()
    reinforce = -(advantage.detach() * output.log_probabilities.float()).sum()
    baseline = advantage.square().mean(1).sum()
    total = nll + reinforce_weight * (reinforce - reinforce.detach()) + baseline
    parts: dict[str, float | Tensor] = {"nll": nll.detach(), "right": right.sum(), "surprise": baseline.detach()}
    return Loss(total, len(labels), parts)


def average_probabilities(logits: Float[Tensor, "runs batch labels"]) -> Float[Tensor, "batch labels"]:
    """Log of the mean probability over several episodes."""
    return logits.float().log_softmax(-1).logsumexp(0) - torch.tensor(float(logits.shape[0])).log()
