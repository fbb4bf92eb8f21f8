"""Settings of object detection."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config import ImageData, ImageModel


@dataclass(frozen=True)
class DetectData(ImageData):
    """Tables of pictures and the objects on each: JSONL with a list of labels and a list of bounding boxes."""

    columns: ClassVar[tuple[str, str, str]] = ("image", "labels", "boxes")

    image: str = "image"
    """The column with the path of the picture, relative to the table's folder: its name, or its number from 1."""
    labels: str = "labels"
    """The column with the list of labels."""
    boxes: str = "boxes"
    """The column with the list of bounding boxes, one for each label."""
    box_format: Literal["xyxy", "xywh", "cxcywh"] = "xyxy"
    """Format of a box. xyxy: left, top, right, bottom in pixels; xywh (COCO): left, top, width, height in pixels; cxcywh
    (YOLO): centre x, centre y, width, height as fractions of the picture."""


@dataclass(frozen=True)
class DetectModel(ImageModel):
    """DETR: a backbone, and decoder layers whose object queries attend to its feature map."""

    layers: int = 3
    """Layers of the decoder, which has model.heads and model.feedforward_size."""
    queries: int = 60
    """Object queries: the most objects that can be detected on a picture."""
    denoising_groups: int = 4
    """Denoising training (DN-DETR): groups of noised ground-truth boxes as extra queries, without matching; 0: none."""
