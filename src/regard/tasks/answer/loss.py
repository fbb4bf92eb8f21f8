"""Loss of answers: cross-entropy of their classes and, where asked for, of the attention to the supporting facts."""

from typing import Any

import torch
from torch.nn import functional as F

from regard.data.modality import AnyBatch
from regard.losses.types import Loss, Progress
from regard.tasks.answer.batch import UNKNOWN, StoryBatch
from regard.tasks.answer.config import AnswerTrain

MIN_WEIGHT = 1e-6
"""Lower bound of a weight in the loss, so that a weight of exactly 0 costs much and not infinitely much."""


class AnswerLoss:
    """Cross-entropy of the answers, and -log of the most that a hop gives to each supporting fact.

    L = Σ -log p(answer)  +  λ Σ_f -log max_k a_k(f) / facts        λ: train.supporting_facts, 0 by default
    """

    capturable = True

    def __init__(self, train: AnswerTrain):
        self.train = train

    def __call__(self, model: Any, batch: AnyBatch, progress: Progress) -> Loss:
        """Sum of the losses of the questions, and their number."""
        assert isinstance(batch, StoryBatch), "stories come in batches of stories"
        assert batch.target is not None, "questions of a training have answers"
        linear = batch.linear if self.train.linear_start else None
        output = model(batch.source, linear, weights=bool(self.train.supporting_facts))
        labels = batch.target.data[:, 0]
        logits = output.logits.float()
        total = F.cross_entropy(
            logits, labels, reduction="sum", label_smoothing=self.train.label_smoothing, ignore_index=UNKNOWN
        )
        parts = {"nll": total.detach(), "right": (logits.argmax(-1) == labels).sum()}
        if self.train.supporting_facts:
            most = output.hops.float().max(1).values.clamp_min(MIN_WEIGHT)
            share = batch.facts / batch.facts.sum(1, keepdim=True).clamp_min(1)
            guidance = -(share * torch.log(most)).sum()
            total = total + self.train.supporting_facts * guidance
            parts["facts"] = guidance.detach()
        return Loss(total, batch.rows, parts)
