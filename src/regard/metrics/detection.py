"""Mean average precision of object detection."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.metrics.boxes import iou
from regard.models.detections import Detections, Objects


class AveragePrecision(NamedTuple):
    """Average precision of each class, NaN without objects of it, and the mean over the others (mAP)."""

    mean: float
    classes: tuple[float, ...]


class Matches(NamedTuple):
    """Detections of one class in one picture: scores, and True for true positives."""

    scores: NDArray[np.float64]
    true_positives: NDArray[np.bool_]


def average_precision(
    predictions: Sequence[Detections], truth: Sequence[Objects], classes: int, overlap: float = 0.5
) -> AveragePrecision:
    """Mean average precision at one IoU: the mean over classes of the area under the precision-recall curve.

        AP = Σ_n (r_n - r_{n-1}) max_{m ≥ n} p_m

    All points of the curve count, as in PASCAL VOC from 2010 on (Everingham et al. 2015,
    https://doi.org/10.1007/s11263-014-0733-5). A detection is a true positive if its IoU with the nearest object of its
    class is `overlap` or more and no detection of higher score was matched to that object; a second one for it is a false
    positive. Detections of equal score enter the curve together, so that the order of a list decides only which is matched
    first.
    """
    if len(predictions) != len(truth):
        raise ValueError(
            f"average precision needs detections for each picture, got {len(predictions)} lists for {len(truth)} pictures"
        )
    if not 0 < overlap <= 1:
        raise ValueError(f"an overlap is a share above 0 and up to 1, got {overlap}")
    by_class = [class_average_precision(predictions, truth, number, overlap) for number in range(classes)]
    defined = [value for value in by_class if not np.isnan(value)]
    return AveragePrecision(float(np.mean(defined)) if defined else float("nan"), tuple(by_class))


def class_average_precision(
    predictions: Sequence[Detections], truth: Sequence[Objects], number: int, overlap: float
) -> float:
    """Average precision of one class; NaN without objects of it."""
    count, matches = 0, []
    for detections, objects in zip(predictions, truth, strict=True):
        of_class, boxes = detections.labels == number, objects.boxes[objects.labels == number]
        count += len(boxes)
        matches.append(match_detections(detections.boxes[of_class], detections.scores[of_class], boxes, overlap))
    if count == 0:
        return float("nan")
    return area_under_curve(
        np.concatenate([match.scores for match in matches]),
        np.concatenate([match.true_positives for match in matches]),
        count,
    )


def match_detections(
    boxes: Float[Tensor, "detections 4"],
    scores: Float[Tensor, " detections"],
    truth: Float[Tensor, "objects 4"],
    overlap: float,
) -> Matches:
    """Match detections of one picture and class to its objects, by descending score."""
    order = torch.argsort(scores.double(), descending=True, stable=True)
    true_positives = np.zeros(len(order), dtype=bool)
    matched = np.zeros(len(truth), dtype=bool)
    overlaps = iou(boxes[order, None].double(), truth[None].double()).cpu().numpy()
    if len(truth):
        for rank, (nearest, share) in enumerate(zip(overlaps.argmax(1), overlaps.max(1), strict=True)):
            true_positives[rank] = share >= overlap and not matched[nearest]
            matched[nearest] |= true_positives[rank]
    return Matches(scores[order].double().cpu().numpy(), true_positives)


def area_under_curve(scores: NDArray[np.float64], true_positives: NDArray[np.bool_], count: int) -> float:
    """Area under the precision-recall curve, with precision interpolated as the maximum at that recall or a higher one."""
    if not len(scores):
        return 0.0
    order = np.argsort(-scores, kind="stable")
    cumulative = np.cumsum(true_positives[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # last index of each run of equal scores
    recall, precision = cumulative[last] / count, cumulative[last] / (last + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall, prepend=0.0) * best))
