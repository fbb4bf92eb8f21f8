"""Set loss of a detector (DETR): bipartite matching of objects with queries; unmatched queries should detect nothing."""

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
"""Parameters of the focal loss."""
NEVER = 1e9
"""Cost of a padded query: more than all objects of a picture together cost otherwise."""


class Cost(NamedTuple):
    """The three terms of a cost, before their weights."""

    label: Tensor
    distance: Tensor
    overlap: Tensor


@dataclass(frozen=True)
class SetLoss:
    """The loss of a detector.

        σ = argmin Σ_i cost(y_i, ŷ_σ(i)),    loss = Σ_layers Σ_i 2 label + 5 |b_i - b̂_σ(i)|₁ + 2 (1 - GIoU(b_i, b̂_σ(i)))

    Carion et al. 2020, eq. 1 and 2, https://arxiv.org/abs/2005.12872, for every layer with a matching of its own. Unlike
    there, classes have binary focal losses (Lin et al. 2017, https://arxiv.org/abs/1708.02002), in which the many unmatched
    queries count little. Each object is assigned the `near` places of the feature map with the least cost, as one-to-one
    matching would leave most of its places without a target; denoising queries need no matching. Sums are over objects, so
    that batches add up.
    """

    label: float = 2.0
    distance: float = 5.0
    overlap: float = 2.0
    near: int = 4
    """Places of the feature map that each object is assigned."""
    proposals: float = 1.0
    denoising: float = 1.0

    def __post_init__(self) -> None:
        if self.near < 1:
            raise ValueError(f"near needs 1 place or more for each object, got {self.near}; proposals=0 trains no place")

    def __call__(self, detected: Detected, objects: ObjectBatch) -> Loss:
        layers, batch = detected.logits.shape[:2]
        logits, boxes = detected.logits.flatten(0, 1).float(), detected.boxes.flatten(0, 1).float()
        repeated = ObjectBatch(*(tensor.repeat(layers, *[1] * (tensor.ndim - 1)) for tensor in objects))
        real = None if detected.real is None else detected.real.repeat(layers, 1)
        chosen = self.match(logits, boxes, repeated, real)
        parts = matched_cost(logits, boxes, repeated, chosen)
        total = self.weigh(parts)
        last = Cost(*(part.view(layers, batch)[-1].sum().detach() for part in parts))
        figures: dict[str, float | Tensor] = {"label": last.label, "distance": last.distance, "overlap": last.overlap}
        if self.proposals:
            proposed = self.weigh(self.propose(detected.proposals, objects)) / self.near
            total = total + self.proposals * proposed
            figures["proposals"] = proposed.detach()
        if self.denoising and detected.noised is not None:
            denoised = self.weigh(denoising_cost(*detected.noised, objects))
            total = total + self.denoising * denoised
            figures["denoising"] = denoised.detach()
        return Loss(total, objects.keep.sum().clamp_min(1), figures)

    def answer(self, detected: Detected, objects: ObjectBatch) -> Float[Tensor, " batch"]:
        """Loss of the last layer for each picture."""
        logits, boxes = detected.logits[-1].float(), detected.boxes[-1].float()
        label, distance, overlap = matched_cost(logits, boxes, objects, self.match(logits, boxes, objects, detected.real))
        return self.label * label + self.distance * distance + self.overlap * overlap

    def weigh(self, parts: Cost) -> Float[Tensor, ""]:
        """Weighted sum of the terms over all rows."""
        return self.label * parts.label.sum() + self.distance * parts.distance.sum() + self.overlap * parts.overlap.sum()

    @torch.no_grad()
    def match(
        self, logits: Logits, boxes: Boxes, objects: ObjectBatch, real: Bool[Tensor, "rows queries"] | None = None
    ) -> Int[Tensor, "rows objects"]:
        """Index of the query of each object, a `real` one; arbitrary for padding. All rows are copied to the CPU at once."""
        costs, things = self.costs(logits, boxes, objects).double(), objects.keep.sum(1)
        queries = things.new_full(things.shape, logits.shape[1]) if real is None else real.sum(1)
        if real is not None:
            costs = costs.masked_fill(~real[:, None], NEVER)
        counts, most = things.cpu().numpy(), queries.cpu().numpy()
        for row in np.flatnonzero(counts > most):
            raise ValueError(
                f"a picture has {counts[row]} objects and the detector {most[row]} queries, and each object needs one; "
                "give the detector more queries, or its feature map more places"
            )
        columns = assign_all(costs.cpu().numpy(), counts)
        return torch.from_numpy(columns).to(logits.device).clamp_min(0)

    def costs(self, logits: Logits, boxes: Boxes, objects: ObjectBatch) -> Float[Tensor, "rows objects queries"]:
        """Cost of matching each object with each query; 0 for padding."""
        labels = objects.labels[:, :, None].expand(-1, -1, logits.shape[1])
        class_logits = logits.mT.gather(1, labels)  # rows objects queries: logit of each object's class in each query
        label = focal(class_logits, torch.ones_like(class_logits)) - focal(class_logits, torch.zeros_like(class_logits))
        distance = torch.cdist(objects.boxes.float(), boxes, p=1.0)
        overlap = -generalised_iou(objects.boxes[:, :, None].float(), boxes[:, None])
        cost = self.label * label + self.distance * distance + self.overlap * overlap
        return cost.masked_fill(~objects.keep[..., None], 0.0)

    def propose(self, proposals: Proposals, objects: ObjectBatch) -> Cost:
        """Cost of the places of the feature map: each is assigned the object that it is among the nearest of, or none."""
        logits, boxes = proposals.logits.float(), proposals.boxes.float()
        if objects.keep.shape[1] == 0:
            zero = logits.new_zeros(())
            nothing = focal(logits, torch.zeros_like(logits)).masked_fill(~proposals.keep[..., None], 0.0)
            return Cost(nothing.sum(), zero, zero)
        owner, owned = self.assign_places(logits.detach(), boxes.detach(), proposals.keep, objects)
        right = objects.boxes.float().gather(1, owner[..., None].expand(-1, -1, 4))
        aim = F.one_hot(objects.labels.gather(1, owner), logits.shape[-1]) * owned[..., None]
        label = focal(logits, aim.to(logits.dtype)).masked_fill(~proposals.keep[..., None], 0.0)
        distance, overlap = box_errors(boxes, right, owned)
        return Cost(label.sum(), distance.sum(), overlap.sum())

    @torch.no_grad()
    def assign_places(
        self, logits: Logits, boxes: Boxes, keep: Bool[Tensor, "rows places"], objects: ObjectBatch
    ) -> tuple[Int[Tensor, "rows places"], Bool[Tensor, "rows places"]]:
        """Object of each place, and whether it has one: objects select their nearest, a place the cheapest of these."""
        costs = self.costs(logits, boxes, objects).masked_fill(~keep[:, None], torch.inf)
        near = costs.topk(min(self.near, costs.shape[-1]), dim=-1, largest=False)
        wanted = torch.zeros_like(costs, dtype=torch.bool).scatter_(2, near.indices, near.values.isfinite())
        wanted &= objects.keep[..., None]
        return costs.masked_fill(~wanted, torch.inf).argmin(1), wanted.any(1)


def focal(logits: Float[Tensor, "..."], aim: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Focal loss: binary cross-entropy in which confident correct predictions count little.

        -α_t (1 - p_t)^γ log p_t

    Lin et al. 2017, https://arxiv.org/abs/1708.02002
    """
    plain = F.binary_cross_entropy_with_logits(logits, aim, reduction="none")
    probability = logits.sigmoid()
    wrong = probability + aim - 2 * probability * aim
    return (ALPHA * aim + (1 - ALPHA) * (1 - aim)) * wrong**GAMMA * plain


def box_errors(
    boxes: Float[Tensor, "rows places 4"], right: Float[Tensor, "rows places 4"], keep: Bool[Tensor, "rows places"]
) -> tuple[Float[Tensor, "rows places"], Float[Tensor, "rows places"]]:
    """Errors of boxes against their targets: |b - b̂|₁ and 1 - GIoU, 0 for padding."""
    distance = (boxes - right).abs().sum(-1).masked_fill(~keep, 0.0)
    return distance, (1 - generalised_iou(boxes, right)).masked_fill(~keep, 0.0)


def matched_cost(logits: Logits, boxes: Boxes, objects: ObjectBatch, chosen: Int[Tensor, "rows objects"]) -> Cost:
    """Cost of rows under a matching of objects with queries."""
    rows, queries, classes = logits.shape
    aim = logits.new_zeros(rows, queries * classes)
    aim.scatter_add_(1, chosen * classes + objects.labels, objects.keep.to(logits.dtype))
    matched = boxes.gather(1, chosen[..., None].expand(-1, -1, 4))
    distance, overlap = box_errors(matched, objects.boxes.float(), objects.keep)
    label = focal(logits, aim.view_as(logits))
    return Cost(label.sum((1, 2)), distance.sum(1), overlap.sum(1))


def denoising_cost(
    logits: Float[Tensor, "layers batch noised classes"], boxes: Float[Tensor, "layers batch noised 4"], objects: ObjectBatch
) -> Cost:
    """Denoising cost, the mean over groups: the n-th query of each group should reconstruct the n-th object."""
    groups = logits.shape[2] // objects.keep.shape[1]
    labels, right, keep = (tensor.repeat(1, groups, *[1] * (tensor.ndim - 2)) for tensor in objects)
    aim = F.one_hot(labels, logits.shape[-1]).to(torch.float32).expand(len(logits), -1, -1, -1)
    label = focal(logits.float(), aim).masked_fill(~keep[None, ..., None], 0.0)
    figures, wanted = boxes.float().flatten(0, 1), right.float().repeat(len(boxes), 1, 1)
    distance, overlap = box_errors(figures, wanted, keep.repeat(len(boxes), 1))
    return Cost(label.sum() / groups, distance.sum() / groups, overlap.sum() / groups)
