"""Detector: labelled boxes of a picture, with their attention."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from regard.data.axis import Axis, Text
from regard.data.image.axis import image_axis
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.records import Record
from regard.errors import DataError
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.metrics.boxes import to_corners
from regard.metrics.detection_bootstrap import COCO_THRESHOLDS, RankedDetections, measure_mean_precision, rank_detections
from regard.metrics.text import Measurement, Metrics, Rows, bootstrap
from regard.models.detections import Detections, ObjectBatch, Objects
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.loss import SetLoss
from regard.tasks.detect.model import Detected, detections
from regard.viewer.palettes import table as palette

SURE = 0.4
"""Least score of a detection in a single answer."""
LEAST, MOST = 0.01, 100
"""Least score, and most detections of a picture, in average precision."""
CLASSES = 20
"""Most labels that have an average precision of their own."""
MAP50 = "mean over labels of average precision, IoU 0.5, all points of the curve, in per cent"
MAP = "the same, mean over IoU 0.5, 0.55, ..., 0.95"
LOSS = "of the last layer, an object"
COLOURS, SHADES = "okabe_ito", 7
"""Palette of the boxes; its eighth colour is black, which objects may have."""


class Detector(ForwardPredictor):
    """Predictor of boxes: one answer has all confident detections; several answers have the best detections one by one."""

    def parse(self, text: str, number: int) -> Annotated:
        """Record of the path of a picture, without boxes."""
        detected: Annotated = self.task.prepare(Annotated(Record(text, None, f"input:{number}")))
        return detected

    def strip_target(self, record: Annotated) -> Annotated:
        """Record without its labels and boxes."""
        return Annotated(record.record)

    def forward(self, batch: ImageBatch, weights: bool = False) -> Detected:
        """Classes and boxes, with attention weights."""
        detected: Detected = self.model(batch.source, weights=weights)
        return detected

    def scores(self, output: Detected) -> Float[Tensor, "batch queries scores"]:
        """Classes and boxes of the last layer."""
        return torch.cat((output.logits[-1].float(), output.boxes[-1].float()), dim=-1)

    def decode(self, examples: Sequence[ImageExample], output: Detected, best: int, align: bool) -> list[list[Prediction]]:
        """Detections as "label left top right bottom score", the best first."""
        rows = []
        for row, (example, detected) in enumerate(zip(examples, detections(output, 0.0), strict=True)):
            if best == 1:
                answers = [select_detections(detected, int((detected.scores >= SURE).sum()))]
            else:
                answers = [select_detections(detected, place + 1, place) for place in range(min(best, len(detected.scores)))]
            rows.append([self.answer(example, row, answer, output, align) for answer in answers])
        return rows

    def answer(self, example: ImageExample, row: int, detected: Detections, output: Detected, align: bool) -> Prediction:
        """Prediction of detections."""
        names = [self.codec.labels[label] for label in detected.labels.tolist()]
        boxes = self.codec.pixels(example, to_corners(detected.boxes))
        scores = [round(score, 4) for score in detected.scores.tolist()]
        said = (
            f"{name} {' '.join(f'{at:.0f}' for at in box)} {score:.2f}"
            for name, box, score in zip(names, boxes, scores, strict=True)
        )
        score = float(detected.scores.float().log().mean()) if names else 0.0
        weights = average_weights(output, row, detected.queries) if align and detected.queries is not None else None
        links = None if weights is None else [(int(place), piece) for piece, place in enumerate(weights.argmax(-1))]
        pieces, grid = self.codec.pieces(example), self.codec.grid(example) if align else None
        return Prediction("; ".join(said), score, pieces, names, weights, links, grid, boxes, scores)

    def evaluate_examples(self, examples: Sequence[ImageExample], *, beam: int | None = None) -> Metrics:
        """The loss of a thing, and average precision over all labels, at one overlap and at ten."""
        return figures(*self.scored(examples))

    def evaluate_records(self, prepared: Sequence[Annotated], *, beam: int | None = None) -> Metrics:
        """Metrics of the pictures of a table, with the average precision of each label where they are few."""
        table, every = self.scored(self.codec.encode_all(prepared).examples)
        detected = figures(table, every)
        if 1 < len(every) <= CLASSES:
            for label, matches in zip(self.codec.labels, loose(every), strict=True):
                if objects := int(matches.objects.sum()):
                    detected[f"ap50 {label}"] = measure_mean_precision(
                        [matches], f"average precision, IoU 0.5; there are {objects:,}"
                    )
        return detected

    def scored(self, examples: Sequence[ImageExample]) -> tuple[Rows, list[RankedDetections]]:
        """Number of objects and loss of each picture, and ranked detections of each label."""
        detected, all_objects, rows = list[Detections](), list[Objects](), list[list[float]]()
        for _, batch in self.batches(examples):
            batch = batch.to(next(self.model.parameters()).device)
            output, objects = self.infer(batch), things(batch)
            costs = SetLoss().answer(output, objects)
            rows += [[float(count), float(cost)] for count, cost in zip(objects.keep.sum(1), costs, strict=True)]
            detected += [
                Detections(*(part.cpu() for part in detection[:3])) for detection in detections(output, LEAST, MOST)
            ]
            parts = zip(*objects, strict=True)
            all_objects += [Objects(labels[keep].cpu(), boxes[keep].cpu()) for labels, boxes, keep in parts]
        if not sum(count for count, _ in rows):
            raise DataError(f"average precision needs pictures with things on them, got {len(rows):,} with none")
        every = [rank_detections(detected, all_objects, number, COCO_THRESHOLDS) for number in range(len(self.codec.labels))]
        return np.array(rows, dtype=np.float64), every

    def trace_parts(self, example: ImageExample, output: Detected) -> ForwardTrace:
        """Each confident detection over the picture with its box; the best one where none is confident."""
        [detected] = detections(output, 0.0)
        detected = select_detections(detected, max(1, int((detected.scores >= SURE).sum())))
        labels = [self.codec.labels[label] for label in detected.labels.tolist()]
        names = [f"{label} {score:.2f}" for label, score in zip(labels, detected.scores.tolist(), strict=True)]
        picture = draw_boxes(self.codec.read_image(example), to_corners(detected.boxes), detected.labels)
        axes: dict[str, Axis] = {"things": Text.of(names), "picture": image_axis(picture, self.codec.stride)}
        keep = output.proposals.keep[0]
        looks = {
            name: AxisWeights("things", "picture", weights[0][:, detected.queries][..., keep])
            for name, weights in output.weights.items()
        }
        return ForwardTrace(axes, looks)


def select_detections(detected: Detections, last: int, first: int = 0) -> Detections:
    """Detections from rank `first` to rank `last`, by score."""
    labels, boxes, scores, queries = detected
    part = slice(first, last)
    return Detections(labels[part], boxes[part], scores[part], None if queries is None else queries[part])


def average_weights(output: Detected, row: int, queries: Int[Tensor, " found"]) -> Float[Tensor, "found places"] | None:
    """Attention weights of the last layer for each detection, the mean of its heads, without padding."""
    if not output.weights:
        return None
    [weights] = list(output.weights.values())[-1:]
    return weights[row].float().mean(0)[queries][:, output.proposals.keep[row]].cpu()


def figures(table: Rows, every: Sequence[RankedDetections]) -> Metrics:
    """Metrics of all pictures."""
    return {
        "loss": Measurement(mean(table.sum(0)), *bootstrap(table, mean), LOSS),
        "map50": measure_mean_precision(loose(every), MAP50),
        "map": measure_mean_precision(every, MAP),
    }


def loose(every: Sequence[RankedDetections]) -> list[RankedDetections]:
    """Detections at an overlap of 0.5 alone."""
    return [matches._replace(true_positives=matches.true_positives[:1]) for matches in every]


def things(batch: ImageBatch) -> ObjectBatch:
    """Labelled objects of a batch."""
    if batch.labels is None or batch.boxes is None:
        raise ValueError("a batch needs labels and boxes, and this one has only pictures")
    return ObjectBatch(batch.labels.data.masked_fill(~batch.labels.keep, 0), batch.boxes, batch.labels.keep)


def mean(total: Rows) -> float:
    """Loss of an object."""
    return float(total[1] / max(total[0], 1.0))


def draw_boxes(
    picture: UInt8[Tensor, "channels height width"],
    edges: Float[Tensor, "boxes 4"],
    labels: Int[Tensor, " boxes"],
) -> UInt8[Tensor, "3 height width"]:
    """Draw boxes on a picture: a line of one pixel along the inside of each, in the colour of its label.

    `edges` are left, top, right and bottom as fractions of the picture. The first box is on top.
    """
    colours = torch.from_numpy(palette(COLOURS).copy())
    pixels = picture.expand(3, -1, -1).clone()
    _, height, width = pixels.shape
    for (left, top, right, bottom), label in reversed(list(zip(edges.tolist(), labels.tolist(), strict=True))):
        colour = colours[label % SHADES][:, None]
        first, last = _pixel(left, width), _pixel(right, width, end=True)
        upper, lower = _pixel(top, height), _pixel(bottom, height, end=True)
        for row in (upper, lower):
            pixels[:, row, first : last + 1] = colour
        for column in (first, last):
            pixels[:, upper : lower + 1, column] = colour
    return pixels


def _pixel(share: float, side: int, end: bool = False) -> int:
    """Pixel of the beginning, or end, of an edge."""
    return min(max(round(share * side) - end, 0), side - 1)
