"""Loss of a synthesiser: frames before and after the postnet, the stop, and guided attention."""

from typing import Any

import torch
from torch.nn import functional as F

from regard.config import Train
from regard.data.modality import AnyBatch
from regard.losses.attention_penalties import guided_attention_loss
from regard.losses.types import Loss, Progress

STOP_WEIGHT = 5.0
"""Weight of the one last step against all others in the loss of the stop."""


class SpeakLoss:
    """Loss of a batch of texts and recordings, per frame.

        Σ_frames (|ŷ - y| + (ŷ - y)² before and after the postnet, means over channels)
        + r Σ_steps (cross-entropy of the stop + λ Σ_s a_ts (1 - exp(-(s / S - t / T)² / 2g²)))

    r is the reduction factor and λ train.guided_attention (Tachibana et al. 2017, https://arxiv.org/abs/1710.08969).
    """

    capturable = True

    def __init__(self, train: Train):
        self.guided = train.guided_attention

    def __call__(self, model: Any, batch: AnyBatch, progress: Progress) -> Loss:
        """Sums over frames, and their number."""
        target = batch.target
        assert target is not None, "recordings of a training have frames"
        spoken = model(batch.source, target)
        frames, reduction = target.data.shape[1], model.reduction
        keep = target.keep[..., None]
        absolute = squared = spoken.frames.new_zeros(())
        for predicted in (spoken.frames, spoken.refined):
            error = (predicted[:, :frames] - target.data).masked_fill(~keep, 0.0)
            absolute, squared = absolute + error.abs().mean(-1).sum(), squared + error.square().mean(-1).sum()
        steps = spoken.steps
        is_last = (steps.cumsum(1) == steps.sum(1, keepdim=True)) & steps
        stop = F.binary_cross_entropy_with_logits(
            spoken.stops, is_last.to(spoken.stops), is_last * (STOP_WEIGHT - 1) + 1.0, reduction="none"
        )
        stops = stop.masked_fill(~steps, 0.0).sum()
        total = absolute + squared + reduction * stops
        parts = {"l1": absolute / 2, "stop": reduction * stops}
        if self.guided:
            guided = guided_attention_loss(spoken.attended, batch.source.keep, steps)
            total, parts = total + self.guided * reduction * guided, parts | {"guided": reduction * guided}
        return Loss(total, target.keep.sum(), {name: value.detach() for name, value in parts.items()})


def mean_absolute_error(predicted: torch.Tensor, target: torch.Tensor, keep: torch.Tensor) -> list[float]:
    """L1 of each row: the mean over its frames and channels."""
    errors = (predicted[:, : target.shape[1]] - target).abs().mean(-1).masked_fill(~keep, 0.0)
    rows: list[float] = (errors.sum(1) / keep.sum(1).clamp_min(1)).tolist()
    return rows
