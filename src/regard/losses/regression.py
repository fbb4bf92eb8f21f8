"""Regression loss of a decoder of numbers: absolute error of frames or values, and the cross-entropy of a learned stop."""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.data.batch import Padded
from regard.data.feedback import NumberFeedback
from regard.losses.types import Loss


def regression_loss(output: Float[Tensor, "batch time size"], target: Padded, feedback: NumberFeedback) -> Loss:
    """Absolute error of the numbers, the mean over their channels, summed over the kept positions; and that of the stop.

        Σ_t  1/C Σ_c |ŷ_tc - y_tc|  +  BCE(stop_t, t is the last)

    Wang et al. 2017, section 4, https://arxiv.org/abs/1703.10135 (L1); Shen et al. 2018, section 2.2,
    https://arxiv.org/abs/1712.05884 (the stop). `parts` has the absolute error as mae.
    """
    errors = (feedback.emit(output).float() - target.data).abs().mean(-1)
    total = errors.masked_fill(~target.keep, 0.0).sum()
    parts: dict[str, float | Tensor] = {"mae": total.detach()}
    if feedback.stops:
        stop = functional.binary_cross_entropy_with_logits(
            output[..., -1].float(), find_last(target.keep).float(), reduction="none"
        )
        cost = stop.masked_fill(~target.keep, 0.0).sum()
        total, parts["stop"] = total + cost, cost.detach()
    return Loss(total, target.keep.sum(), parts)


def find_last(keep: Bool[Tensor, "batch time"]) -> Bool[Tensor, "batch time"]:
    """True at the last kept position of each row."""
    return keep & ~functional.pad(keep[:, 1:], (0, 1), value=False)
