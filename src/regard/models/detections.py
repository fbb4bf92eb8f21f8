"""Object detection records: ground truth, predictions, and noised ground truth for denoising training."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MIN_SIZE = 1e-3
"""Minimum width and height of a noised box."""


class Objects(NamedTuple):
    """Ground truth of a picture: class labels and boxes (centre x, centre y, width, height, relative to the picture)."""

    labels: Int[Tensor, " objects"]
    boxes: Float[Tensor, "objects 4"]


class Detections(NamedTuple):
    """Predictions for a picture: labels, boxes, confidence scores, and the query (row of the attention weights) of each."""

    labels: Int[Tensor, " found"]
    boxes: Float[Tensor, "found 4"]
    scores: Float[Tensor, " found"]
    queries: Int[Tensor, " found"] | None = None


class ObjectBatch(NamedTuple):
    """Ground truth of a batch, padded to the most objects; `keep` is True where there is one."""

    labels: Int[Tensor, "batch objects"]
    boxes: Float[Tensor, "batch objects 4"]
    keep: Bool[Tensor, "batch objects"]

    def to(self, device: torch.device | str) -> "ObjectBatch":
        """Copy on another device."""
        return ObjectBatch(*(tensor.to(device, non_blocking=True) for tensor in self))


class NoisedObjects(NamedTuple):
    """Noised copies of all objects, each group with other errors in labels and boxes."""

    labels: Int[Tensor, "batch groups objects"]
    boxes: Float[Tensor, "batch groups objects 4"]
    keep: Bool[Tensor, "batch objects"]


def collate_objects(pictures: Sequence[Objects]) -> ObjectBatch:
    """Collate the objects of several pictures; padding is a box in the middle, which is never read."""
    most = max((len(picture.labels) for picture in pictures), default=0)
    labels = torch.zeros(len(pictures), most, dtype=torch.long)
    boxes = torch.full((len(pictures), most, 4), 0.5)
    keep = torch.zeros(len(pictures), most, dtype=torch.bool)
    for row, picture in enumerate(pictures):
        count = len(picture.labels)
        if picture.boxes.shape != (count, 4):
            raise ValueError(f"{count} labels need as many boxes, (objects, 4), got shape {tuple(picture.boxes.shape)}")
        labels[row, :count], boxes[row, :count], keep[row, :count] = picture.labels, picture.boxes, True
    return ObjectBatch(labels, boxes, keep)


def add_noise(
    objects: ObjectBatch,
    classes: int,
    groups: int = 4,
    *,
    shift: float = 0.4,
    scale: float = 0.4,
    flip: float = 0.2,
    generator: torch.Generator | None = None,
) -> NoisedObjects:
    """Noise ground truth: move boxes by up to `shift` of half their size, scale by up to `scale`, flip a share of labels.

        |Δx| < shift · w / 2,    w' = w (1 ± scale)

    Li et al. 2022, https://arxiv.org/abs/2203.01305
    A centre stays in its box where `shift` is at most 1. Labels are sampled from all `classes`, so that some come out right.
    """
    if groups < 1 or not 0 <= shift <= 1 or not 0 <= scale < 1 or not 0 <= flip <= 1:
        raise ValueError(
            f"noise needs 1 group or more, shift from 0 to 1, scale from 0 to below 1 and flip from 0 to 1, "
            f"got {groups}, {shift}, {scale}, {flip}"
        )
    batch, count, _ = objects.boxes.shape
    device = objects.boxes.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=device if generator is None else generator.device).to(device)

    boxes = objects.boxes[:, None].expand(batch, groups, count, 4)
    size = boxes[..., 2:]
    centre = boxes[..., :2] + (2 * uniform(batch, groups, count, 2) - 1) * shift * size / 2
    stretched = size * (1 + (2 * uniform(batch, groups, count, 2) - 1) * scale)
    others = (uniform(batch, groups, count) * classes).long().clamp_max(classes - 1)
    labels = torch.where(uniform(batch, groups, count) < flip, others, objects.labels[:, None])
    return NoisedObjects(labels, torch.cat((centre.clamp(0, 1), stretched.clamp(MIN_SIZE, 1)), dim=-1), objects.keep)
