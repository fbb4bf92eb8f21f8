"""Geometry of bounding boxes as centre x, centre y, width and height relative to the picture; IoU and GIoU."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

Boxes = Float[Tensor, "... 4"]
MIN_AREA = torch.finfo(torch.float32).tiny
"""Largest area that counts as 0: the smallest normal float32. Any larger bound is the area of some box: 1e-9 is that of 3e-5
by 3e-5."""
TOLERANCE = 1e-4
"""Tolerance for a box that reaches over the edge of its picture, as rounding may make of a box that ends there."""


def to_corners(boxes: Boxes) -> Boxes:
    """Convert boxes to left, top, right, bottom."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat((centre - half, centre + half), dim=-1)


def from_corners(edges: Boxes) -> Boxes:
    """Convert boxes from left, top, right, bottom."""
    near, far = edges[..., :2], edges[..., 2:]
    return torch.cat(((near + far) / 2, far - near), dim=-1)


def from_pixels(edges: Boxes, width: int, height: int) -> Boxes:
    """Convert boxes from left, top, right, bottom in pixels, as most annotations have them."""
    return from_corners(edges / edges.new_tensor([width, height, width, height]))


def compute_area(edges: Boxes) -> Float[Tensor, "..."]:
    """Area of boxes given by their corners; 0 where right is less than left."""
    return (edges[..., 2:] - edges[..., :2]).clamp_min(0.0).prod(-1)


def iou(first: Boxes, second: Boxes) -> Float[Tensor, "..."]:
    """Intersection over union, box by box, with the usual rules of broadcasting.

        IoU = |A ∩ B| / |A ∪ B|

    All pairs of two lists are iou(first[:, None], second[None]).
    """
    return compute_iou_and_union(first, second)[0]


def generalised_iou(first: Boxes, second: Boxes) -> Float[Tensor, "..."]:
    """Generalised IoU, from -1 to 1, which also measures how far apart boxes without overlap are.

        GIoU = IoU - |C \\ (A ∪ B)| / |C|,    C the smallest box around both

    Rezatofighi et al. 2019, https://arxiv.org/abs/1902.09630
    """
    iou_value, union = compute_iou_and_union(first, second)
    a, b = to_corners(first), to_corners(second)
    enclosing = torch.cat((torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])), dim=-1)
    enclosing_area = compute_area(enclosing)
    return iou_value - divide_areas(enclosing_area - union, enclosing_area)


def compute_iou_and_union(first: Boxes, second: Boxes) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """IoU and the area of the union."""
    for boxes in (first, second):
        if boxes.shape[-1:] != (4,):
            raise ValueError(f"boxes need a last dimension of 4 numbers, got shape {tuple(boxes.shape)}")
    a, b = to_corners(first), to_corners(second)
    intersection = torch.cat((torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])), dim=-1)
    intersection_area = compute_area(intersection)
    union = compute_area(a) + compute_area(b) - intersection_area
    return divide_areas(intersection_area, union), union


def divide_areas(part: Float[Tensor, "..."], whole: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Quotient of an area and one that contains it; 0 for empty areas."""
    return part / whole.masked_fill(whole <= MIN_AREA, 1.0)


def check_boxes(boxes: Float[Tensor, "objects 4"], name: str, names: Sequence[str] = ()) -> None:
    """Raise unless every box of the picture called `name` has a width and a height and lies in the picture.

    `names` are the labels of the boxes.
    """
    if boxes.shape[-1:] != (4,) or boxes.ndim != 2:
        raise ValueError(f"{name} needs boxes of (objects, 4), got shape {tuple(boxes.shape)}")
    edges = to_corners(boxes)
    for number, (box, edge) in enumerate(zip(boxes.tolist(), edges.tolist(), strict=True)):
        subject = f"{name}: box {number + 1}" + (f" ({names[number]})" if names else "")
        if not all(torch.isfinite(boxes[number]).tolist()):
            raise ValueError(f"{subject} has numbers that are not finite, {format_numbers(box)}; correct it or leave it out")
        if box[2] <= 0 or box[3] <= 0:
            raise ValueError(
                f"{subject} needs a width and a height above 0, got {format_numbers(box)} (centre x, centre y, width, "
                "height); leave it out, or correct it"
            )
        if min(edge) < -TOLERANCE or max(edge) > 1 + TOLERANCE:
            raise ValueError(
                f"{subject} reaches outside its picture: left, top, right, bottom are {format_numbers(edge)}, and the "
                "picture goes from 0 to 1; give boxes relative to the picture, and clip them to it"
            )


def format_numbers(numbers: Sequence[float]) -> str:
    """Format numbers for an error message."""
    return ", ".join(f"{number:.4g}" for number in numbers)
