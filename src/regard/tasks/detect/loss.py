"""What a set of detections costs: each thing is matched with one query, and all other queries ought to say nothing."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.losses.types import Loss
from regard.metrics.boxes import generalised_iou
from regard.models.detections import ObjectBatch
from regard.tasks.detect.assignment import assign_all
from regard.tasks.detect.model import Detected, Proposals

Logits = Float[Tensor, "rows queries classes"]
Boxes = Float[Tensor, "rows queries 4"]
ALPHA, GAMMA = 0.25, 2.0
"""The numbers of the focal loss."""
NEVER = 1e9
"""The cost of a query that no place stands behind: more than all things of a picture together cost otherwise."""


class Cost(NamedTuple):
    """The three parts of a cost, before they are weighed; less is better."""

    label: Tensor
    distance: Tensor
    overlap: Tensor


@dataclass(frozen=True)
class SetLoss:
    """The loss of a detector.

        σ = argmin Σ_i cost(y_i, ŷ_σ(i)),    loss = Σ_layers Σ_i label + 5 |b_i - b̂_σ(i)|₁ + 2 (1 - GIoU(b_i, b̂_σ(i)))

    Carion et al. 2020, eq. 1 and 2, https://arxiv.org/abs/2005.12872, for every layer with a matching of its own. Unlike
    there, classes are judged one by one by the focal loss (Lin et al. 2017, https://arxiv.org/abs/1708.02002), which leaves
    the many queries that find nothing little to say. Each thing teaches the `near` places of the map that come closest to it
    by the same cost, as one to one would leave most of what is seen of it untaught; and what was given with noise teaches
    without any matching. Sums are over things, so that batches add up.
    """

    label: float = 2.0
    distance: float = 5.0
    overlap: float = 2.0
    near: int = 4
    """Places of the map that each thing teaches."""
    proposals: float = 1.0
    denoising: float = 1.0

    def __post_init__(self) -> None:
        if self.near < 1:
            raise ValueError(f"near needs 1 place or more for each thing, got {self.near}; proposals=0 teaches no place")

    def __call__(self, detected: Detected, objects: ObjectBatch) -> Loss:
        layers, batch = detected.logits.shape[:2]
        logits, boxes = detected.logits.flatten(0, 1).float(), detected.boxes.flatten(0, 1).float()
        repeated = ObjectBatch(*(each.repeat(layers, *[1] * (each.ndim - 1)) for each in objects))
        real = None if detected.real is None else detected.real.repeat(layers, 1)
        chosen = self.match(logits, boxes, repeated, real)
        parts = taught(logits, boxes, repeated, chosen)
        total = self.weigh(parts)
        last = Cost(*(each.view(layers, batch)[-1].sum().detach() for each in parts))
        told: dict[str, float | Tensor] = {"label": last.label, "distance": last.distance, "overlap": last.overlap}
        if self.proposals:
            proposed = self.weigh(self.propose(detected.proposals, objects)) / self.near
            total = total + self.proposals * proposed
            told["proposals"] = proposed.detach()
        if self.denoising and detected.noised is not None:
            undone = self.weigh(denoised(*detected.noised, objects))
            total = total + self.denoising * undone
            told["denoising"] = undone.detach()
        return Loss(total, objects.keep.sum().clamp_min(1), told)

    def answer(self, detected: Detected, objects: ObjectBatch) -> Float[Tensor, " batch"]:
        """What the last layer costs, picture by picture."""
        logits, boxes = detected.logits[-1].float(), detected.boxes[-1].float()
        label, distance, overlap = taught(logits, boxes, objects, self.match(logits, boxes, objects, detected.real))
        return self.label * label + self.distance * distance + self.overlap * overlap

    def weigh(self, parts: Cost) -> Float[Tensor, ""]:
        """The parts of all rows as one number."""
        return self.label * parts.label.sum() + self.distance * parts.distance.sum() + self.overlap * parts.overlap.sum()

    @torch.no_grad()
    def match(
        self, logits: Logits, boxes: Boxes, objects: ObjectBatch, real: Bool[Tensor, "rows queries"] | None = None
    ) -> Int[Tensor, "rows objects"]:
        """The query of each thing, a `real` one; whatever for what is not there. All rows cross to the CPU at once."""
        costs, things = self.costs(logits, boxes, objects).double(), objects.keep.sum(1)
        queries = things.new_full(things.shape, logits.shape[1]) if real is None else real.sum(1)
        if real is not None:
            costs = costs.masked_fill(~real[:, None], NEVER)
        counts, most = things.cpu().numpy(), queries.cpu().numpy()
        for row in np.flatnonzero(counts > most):
            raise ValueError(
                f"a picture has {counts[row]} things and the detector {most[row]} queries, and each thing needs one; "
                "give the detector more queries, or its map more places"
            )
        columns = assign_all(costs.cpu().numpy(), counts)
        return torch.from_numpy(columns).to(logits.device).clamp_min(0)

    def costs(self, logits: Logits, boxes: Boxes, objects: ObjectBatch) -> Float[Tensor, "rows objects queries"]:
        """What it would cost to match each thing with each query; what is not there costs nothing."""
        labels = objects.labels[:, :, None].expand(-1, -1, logits.shape[1])
        each = logits.mT.gather(1, labels)  # rows objects queries: how each query names each thing's class
        label = focal(each, torch.ones_like(each)) - focal(each, torch.zeros_like(each))
        distance = torch.cdist(objects.boxes.float(), boxes, p=1.0)
        overlap = -generalised_iou(objects.boxes[:, :, None].float(), boxes[:, None])
        cost = self.label * label + self.distance * distance + self.overlap * overlap
        return cost.masked_fill(~objects.keep[..., None], 0.0)

    def propose(self, proposals: Proposals, objects: ObjectBatch) -> Cost:
        """What the places of the map cost: each belongs to the thing that it is among the nearest of, or to none."""
        logits, boxes = proposals.logits.float(), proposals.boxes.float()
        if objects.keep.shape[1] == 0:
            nobody = logits.new_zeros(())
            nothing = focal(logits, torch.zeros_like(logits)).masked_fill(~proposals.keep[..., None], 0.0)
            return Cost(nothing.sum(), nobody, nobody)
        owner, owned = self.own(logits.detach(), boxes.detach(), proposals.keep, objects)
        right = objects.boxes.float().gather(1, owner[..., None].expand(-1, -1, 4))
        aim = F.one_hot(objects.labels.gather(1, owner), logits.shape[-1]) * owned[..., None]
        label = focal(logits, aim.to(logits.dtype)).masked_fill(~proposals.keep[..., None], 0.0)
        distance, overlap = apart(boxes, right, owned)
        return Cost(label.sum(), distance.sum(), overlap.sum())

    @torch.no_grad()
    def own(
        self, logits: Logits, boxes: Boxes, keep: Bool[Tensor, "rows places"], objects: ObjectBatch
    ) -> tuple[Int[Tensor, "rows places"], Bool[Tensor, "rows places"]]:
        """The thing of each place, and whether it has one: things choose their nearest, a place the cheapest of these."""
        costs = self.costs(logits, boxes, objects).masked_fill(~keep[:, None], torch.inf)
        near = costs.topk(min(self.near, costs.shape[-1]), dim=-1, largest=False)
        wanted = torch.zeros_like(costs, dtype=torch.bool).scatter_(2, near.indices, near.values.isfinite())
        wanted &= objects.keep[..., None]
        return costs.masked_fill(~wanted, torch.inf).argmin(1), wanted.any(1)


def focal(logits: Float[Tensor, "..."], aim: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Cross-entropy of yes or no in which what is right already counts little.

        -α_t (1 - p_t)^γ log p_t

    Lin et al. 2017, https://arxiv.org/abs/1708.02002
    """
    plain = F.binary_cross_entropy_with_logits(logits, aim, reduction="none")
    probability = logits.sigmoid()
    wrong = probability + aim - 2 * probability * aim
    return (ALPHA * aim + (1 - ALPHA) * (1 - aim)) * wrong**GAMMA * plain


def apart(
    boxes: Float[Tensor, "rows places 4"], right: Float[Tensor, "rows places 4"], keep: Bool[Tensor, "rows places"]
) -> tuple[Float[Tensor, "rows places"], Float[Tensor, "rows places"]]:
    """How far boxes are from where they ought to be: |b - b̂|₁ and 1 - GIoU, 0 where there is nothing."""
    distance = (boxes - right).abs().sum(-1).masked_fill(~keep, 0.0)
    return distance, (1 - generalised_iou(boxes, right)).masked_fill(~keep, 0.0)


def taught(logits: Logits, boxes: Boxes, objects: ObjectBatch, chosen: Int[Tensor, "rows objects"]) -> Cost:
    """What rows cost, each thing with the query that was chosen for it."""
    rows, queries, classes = logits.shape
    aim = logits.new_zeros(rows, queries * classes)
    aim.scatter_add_(1, chosen * classes + objects.labels, objects.keep.to(logits.dtype))
    matched = boxes.gather(1, chosen[..., None].expand(-1, -1, 4))
    distance, overlap = apart(matched, objects.boxes.float(), objects.keep)
    label = focal(logits, aim.view_as(logits))
    return Cost(label.sum((1, 2)), distance.sum(1), overlap.sum(1))


def denoised(
    logits: Float[Tensor, "layers batch noised classes"], boxes: Float[Tensor, "layers batch noised 4"], objects: ObjectBatch
) -> Cost:
    """What is left of the noise, in the mean over groups: the n-th of each group ought to be the n-th thing again."""
    groups = logits.shape[2] // objects.keep.shape[1]
    labels, right, keep = (each.repeat(1, groups, *[1] * (each.ndim - 2)) for each in objects)
    aim = F.one_hot(labels, logits.shape[-1]).to(torch.float32).expand(len(logits), -1, -1, -1)
    label = focal(logits.float(), aim).masked_fill(~keep[None, ..., None], 0.0)
    told, wanted = boxes.float().flatten(0, 1), right.float().repeat(len(boxes), 1, 1)
    distance, overlap = apart(told, wanted, keep.repeat(len(boxes), 1))
    return Cost(label.sum() / groups, distance.sum() / groups, overlap.sum() / groups)
