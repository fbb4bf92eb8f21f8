"""Confidence interval of mean average precision: detections are ranked once, pictures resampled by bootstrap."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.metrics.boxes import iou
from regard.metrics.text import Measurement
from regard.models.detections import Detections, Objects

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
COCO_THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
"""IoU thresholds of COCO: 0.5, 0.55, ..., 0.95."""
BLOCK = 1 << 20
"""Maximum number of detection weights that the bootstrap holds at a time."""


class RankedDetections(NamedTuple):
    """Detections of one class by descending score: the picture of each, and whether it is right at each IoU threshold."""

    picture: Numbers
    right: NDArray[np.bool_]
    """(overlaps, detections)"""
    last: Numbers
    """Last index of each run of equal scores: such detections enter the curve together."""
    things: Floats
    """Number of objects of the class in each picture."""


def rank_detections(
    found: Sequence[Detections], there: Sequence[Objects], number: int, overlaps: Sequence[float]
) -> RankedDetections:
    """Rank the detections of a class over all pictures; matches are those of `average_precision`."""
    things, pictures, scores, right = [], [], [], []
    for place, (detections, objects) in enumerate(zip(found, there, strict=True)):
        mine, boxes = detections.labels == number, objects.boxes[objects.labels == number]
        things.append(len(boxes))
        score = detections.scores[mine].double()
        surest = torch.argsort(score, descending=True, stable=True)
        shared = iou(detections.boxes[mine][surest, None].double(), boxes[None].double()).cpu().numpy()
        pictures += [place] * len(surest)
        scores.append(score[surest].cpu().numpy())
        right.append(np.stack([find_true_positives(shared, overlap) for overlap in overlaps]))
    every = np.concatenate(scores)
    order = np.argsort(-every, kind="stable")
    last = np.append(np.flatnonzero(np.diff(every[order])), len(every) - 1) if len(every) else np.zeros(0, np.int64)
    sorted_right = np.concatenate(right, axis=1)[:, order]
    return RankedDetections(np.array(pictures, np.int64)[order], sorted_right, last, np.array(things, np.float64))


def find_true_positives(shared: Floats, overlap: float) -> NDArray[np.bool_]:
    """True positives of a picture: for each object the best-scored detection with enough IoU to it."""
    right = np.zeros(len(shared), dtype=bool)
    if shared.size:
        enough = np.flatnonzero(shared.max(1) >= overlap)
        _, first = np.unique(shared.argmax(1)[enough], return_index=True)
        right[enough[first]] = True
    return right


def resample_precision(found: RankedDetections, times: Floats) -> Floats:
    """Average precision, averaged over IoU thresholds, with pictures weighted by `times[sample, p]`; NaN without objects.

    AP = Σ_n (r_n - r_{n-1}) max_{m ≥ n} p_m
    """
    things = times @ found.things
    scores = np.full(len(times), np.nan)
    weight = times[:, found.picture]
    said = np.cumsum(weight, axis=1)[:, found.last]
    each = np.zeros(len(times))
    for right in found.right:
        held = np.cumsum(weight * right, axis=1)[:, found.last]
        recall = held / np.maximum(things, 1)[:, None]
        precision = np.divide(held, said, out=np.zeros_like(held), where=said > 0)
        best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        each += np.sum(np.diff(recall, prepend=0.0, axis=1) * best, axis=1)
    return np.where(things > 0, each / len(found.right), scores)


def measure_mean_precision(
    classes: Sequence[RankedDetections], said: str, resamples: int = 1000, seed: int = 0
) -> Measurement:
    """Mean over classes in per cent, with its bootstrap interval over pictures."""
    pictures = len(classes[0].things)
    draw = np.random.default_rng(seed)
    size = max(1, BLOCK // max(1, *(len(each.picture) for each in classes)))
    scores: list[float] = []
    while len(scores) < resamples:
        many = min(size, resamples - len(scores))
        times = draw.multinomial(pictures, np.full(pictures, 1 / pictures), size=many).astype(np.float64)
        scores += mean_over_classes(classes, times).tolist()
    low, high = np.nanpercentile(scores, [2.5, 97.5]) if np.isfinite(scores).any() else (np.nan, np.nan)
    return Measurement(float(mean_over_classes(classes, np.ones((1, pictures)))[0]), float(low), float(high), said)


def mean_over_classes(classes: Sequence[RankedDetections], times: Floats) -> Floats:
    """Mean over the classes with objects, in per cent; NaN where none has any."""
    each = np.stack([resample_precision(one, times) for one in classes])
    there = np.isfinite(each)
    return np.where(there.any(0), 100 * np.where(there, each, 0).sum(0) / np.maximum(there.sum(0), 1), np.nan)
