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
    """Detections of one class in one picture: their scores, and which of them are true positives."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]


def average_precision(
    found: Sequence[Detections], there: Sequence[Objects], classes: int, overlap: float = 0.5
) -> AveragePrecision:
    """Mean average precision at one IoU: the mean over classes of the area under the precision-recall curve.

        AP = Σ_n (r_n - r_{n-1}) max_{m ≥ n} p_m

    All points of the curve count, as in PASCAL VOC from 2010 on (Everingham et al. 2015,
    https://doi.org/10.1007/s11263-014-0733-5). A detection is a true positive if its IoU with the nearest object of its
    class is `overlap` or more and no detection of higher score was matched to that object; a second one for it is a false
    positive. Detections of equal score enter the curve together, so that the order of a list decides only which is matched
    first.
    """
    if len(found) != len(there):
        raise ValueError(
            f"average precision needs detections for each picture, got {len(found)} lists for {len(there)} pictures"
        )
    if not 0 < overlap <= 1:
        raise ValueError(f"an overlap is a share above 0 and up to 1, got {overlap}")
    each = [class_average_precision(found, there, number, overlap) for number in range(classes)]
    known = [value for value in each if not np.isnan(value)]
    return AveragePrecision(float(np.mean(known)) if known else float("nan"), tuple(each))


def class_average_precision(found: Sequence[Detections], there: Sequence[Objects], number: int, overlap: float) -> float:
    """Average precision of one class; NaN without objects of it."""
    count, judged = 0, []
    for detections, objects in zip(found, there, strict=True):
        mine, right = detections.labels == number, objects.boxes[objects.labels == number]
        count += len(right)
        judged.append(match_detections(detections.boxes[mine], detections.scores[mine], right, overlap))
    if count == 0:
        return float("nan")
    return area_under_curve(
        np.concatenate([each.scores for each in judged]), np.concatenate([each.right for each in judged]), count
    )


def match_detections(
    boxes: Float[Tensor, "found 4"], scores: Float[Tensor, " found"], right: Float[Tensor, "objects 4"], overlap: float
) -> Matches:
    """Match detections of one picture and class to its objects, by descending score."""
    order = torch.argsort(scores.double(), descending=True, stable=True)
    hits = np.zeros(len(order), dtype=bool)
    taken = np.zeros(len(right), dtype=bool)
    overlaps = iou(boxes[order, None].double(), right[None].double()).cpu().numpy()
    if len(right):
        for place, (nearest, share) in enumerate(zip(overlaps.argmax(1), overlaps.max(1), strict=True)):
            hits[place] = share >= overlap and not taken[nearest]
            taken[nearest] |= hits[place]
    return Matches(scores[order].double().cpu().numpy(), hits)


def area_under_curve(scores: NDArray[np.float64], right: NDArray[np.bool_], count: int) -> float:
    """Area under the precision-recall curve, with precision interpolated as the maximum at that recall or a higher one."""
    if not len(scores):
        return 0.0
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(right[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # last index of each run of equal scores
    recall, precision = hits[last] / count, hits[last] / (last + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall, prepend=0.0) * best))
