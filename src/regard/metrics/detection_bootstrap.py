"""Bootstrap interval of mean average precision: detections are ranked once, pictures resampled."""

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
    """Detections of one class by descending score: their pictures, and the true positives at each IoU threshold."""

    picture: Numbers
    true_positives: NDArray[np.bool_]
    """(overlaps, detections)"""
    last: Numbers
    """Last index of each run of equal scores: such detections enter the curve together."""
    objects: Floats
    """Number of objects of the class in each picture."""


def rank_detections(
    predictions: Sequence[Detections], truth: Sequence[Objects], number: int, overlaps: Sequence[float]
) -> RankedDetections:
    """Rank the detections of a class over all pictures; matches are those of `average_precision`."""
    counts, pictures, scores, right = [], [], [], []
    for picture, (detections, objects) in enumerate(zip(predictions, truth, strict=True)):
        of_class, boxes = detections.labels == number, objects.boxes[objects.labels == number]
        counts.append(len(boxes))
        score = detections.scores[of_class].double()
        ranking = torch.argsort(score, descending=True, stable=True)
        ranked_boxes = detections.boxes[of_class][ranking, None]
        ious = iou(ranked_boxes.double(), boxes[None].double()).cpu().numpy()
        pictures += [picture] * len(ranking)
        scores.append(score[ranking].cpu().numpy())
        right.append(np.stack([find_true_positives(ious, overlap) for overlap in overlaps]))
    all_scores = np.concatenate(scores)
    order = np.argsort(-all_scores, kind="stable")
    last = (
        np.append(np.flatnonzero(np.diff(all_scores[order])), len(all_scores) - 1)
        if len(all_scores)
        else np.zeros(0, np.int64)
    )
    sorted_right = np.concatenate(right, axis=1)[:, order]
    return RankedDetections(np.array(pictures, np.int64)[order], sorted_right, last, np.array(counts, np.float64))


def find_true_positives(ious: Floats, overlap: float) -> NDArray[np.bool_]:
    """True positives of a picture: for each object the best-scored detection with enough IoU to it."""
    right = np.zeros(len(ious), dtype=bool)
    if ious.size:
        enough = np.flatnonzero(ious.max(1) >= overlap)
        _, first = np.unique(ious.argmax(1)[enough], return_index=True)
        right[enough[first]] = True
    return right


def resample_precision(ranked: RankedDetections, times: Floats) -> Floats:
    """Average precision, averaged over IoU thresholds, with pictures weighted by `times[sample, p]`; NaN without objects.

    AP = Σ_n (r_n - r_{n-1}) max_{m ≥ n} p_m
    """
    objects = times @ ranked.objects
    undefined = np.full(len(times), np.nan)
    weight = times[:, ranked.picture]
    detections = np.cumsum(weight, axis=1)[:, ranked.last]
    total = np.zeros(len(times))
    for correct in ranked.true_positives:
        true_positives = np.cumsum(weight * correct, axis=1)[:, ranked.last]
        recall = true_positives / np.maximum(objects, 1)[:, None]
        precision = np.divide(true_positives, detections, out=np.zeros_like(true_positives), where=detections > 0)
        best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        total += np.sum(np.diff(recall, prepend=0.0, axis=1) * best, axis=1)
    return np.where(objects > 0, total / len(ranked.true_positives), undefined)


def measure_mean_precision(
    classes: Sequence[RankedDetections], signature: str, resamples: int = 1000, seed: int = 0
) -> Measurement:
    """Mean over classes in per cent, with its bootstrap interval over pictures."""
    pictures = len(classes[0].objects)
    generator = np.random.default_rng(seed)
    size = max(1, BLOCK // max(1, *(len(ranked.picture) for ranked in classes)))
    scores: list[float] = []
    while len(scores) < resamples:
        count = min(size, resamples - len(scores))
        times = generator.multinomial(pictures, np.full(pictures, 1 / pictures), size=count).astype(np.float64)
        scores += mean_over_classes(classes, times).tolist()
    low, high = np.nanpercentile(scores, [2.5, 97.5]) if np.isfinite(scores).any() else (np.nan, np.nan)
    return Measurement(float(mean_over_classes(classes, np.ones((1, pictures)))[0]), float(low), float(high), signature)


def mean_over_classes(classes: Sequence[RankedDetections], times: Floats) -> Floats:
    """Mean over the classes with objects, in per cent; NaN where none has any."""
    precision = np.stack([resample_precision(ranked, times) for ranked in classes])
    defined = np.isfinite(precision)
    return np.where(defined.any(0), 100 * np.where(defined, precision, 0).sum(0) / np.maximum(defined.sum(0), 1), np.nan)
