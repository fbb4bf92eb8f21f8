"""Boxes that follow their picture through a change of its geometry."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

VISIBLE = 0.3
"""The least share of a box that needs to be in the picture for it to stay."""


def transform_boxes(boxes: Float[Tensor, "boxes 4"], matrix: Float[Tensor, "2 3"]) -> Float[Tensor, "boxes 4"]:
    """The upright boxes around the corners of boxes, after x, y -> matrix (x, y, 1), both in shares of the picture."""
    centre, half = boxes[:, None, :2], boxes[:, None, 2:] / 2
    signs = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]).to(boxes)
    corners = (centre + half * signs) @ matrix[:, :2].T.to(boxes) + matrix[:, 2].to(boxes)
    low, high = corners.amin(1), corners.amax(1)
    return torch.cat(((low + high) / 2, high - low), dim=1)


def inside(
    boxes: Float[Tensor, "before 4"], visible: float = VISIBLE
) -> tuple[Float[Tensor, "after 4"], Bool[Tensor, "before"]]:
    """Boxes cut at the edge of the picture, without those of which less than a share can be seen, and which ones stayed."""
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    low, high = low.clamp(0, 1), high.clamp(0, 1)
    area, visible_area = boxes[:, 2:].prod(1), (high - low).prod(1)
    stayed = (visible_area > 0) & (visible_area >= visible * area)
    return torch.cat(((low + high) / 2, high - low), dim=1)[stayed], stayed
