"""A detector that was trained: what is on a picture, where, and where it looked to find that."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.axis import Axis, Text
from regard.data.image.axis import image_axis
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.records import Record
from regard.errors import DataError
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.metrics.boxes import to_corners
from regard.metrics.detection_interval import COCO_THRESHOLDS, RankedDetections, measure_mean_precision, rank_detections
from regard.metrics.text import Measurement, Metrics, Rows, bootstrap
from regard.models.detections import Detections, ObjectBatch, Objects
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.loss import SetLoss
from regard.tasks.detect.model import Detected, detections
from regard.viewer.record.boxes import framed

SURE = 0.4
"""How likely a thing needs to be to be told, where nobody asks for a number of them."""
LEAST, MOST = 0.01, 100
"""How likely a thing needs to be to count in average precision, and how many on each picture do."""
CLASSES = 20
"""Up to how many labels have a figure each."""
MAP50 = "mean over labels of average precision, IoU 0.5, all points of the curve, in per cent"
MAP = "the same, mean over IoU 0.5, 0.55, ..., 0.95"
LOSS = "of the last layer, a thing"


class Detector(ForwardPredictor):
    """Asked for one answer, it tells all things that it is sure of; asked for several, the surest things one by one."""

    def parse(self, text: str, number: int) -> Annotated:
        """Record of the path of a picture, without boxes."""
        found: Annotated = self.task.prepare(Annotated(Record(text, None, f"input:{number}")))
        return found

    def strip_target(self, record: Annotated) -> Annotated:
        """Record without its labels and boxes."""
        return Annotated(record.record)

    def forward(self, batch: ImageBatch, weights: bool = False) -> Detected:
        """Classes and boxes, and where was looked."""
        found: Detected = self.model(batch.source, weights=weights)
        return found

    def scores(self, output: Detected) -> Float[Tensor, "batch queries scores"]:
        """Classes and boxes of the last layer."""
        return torch.cat((output.logits[-1].float(), output.boxes[-1].float()), dim=-1)

    def decode(self, examples: Sequence[ImageExample], output: Detected, best: int, align: bool) -> list[list[Prediction]]:
        """Every thing as "label left top right bottom score", the surest first."""
        rows = []
        for row, (example, found) in enumerate(zip(examples, detections(output, 0.0), strict=True)):
            if best == 1:
                answers = [picked(found, int((found.scores >= SURE).sum()))]
            else:
                answers = [picked(found, place + 1, place) for place in range(min(best, len(found.scores)))]
            rows.append([self.answer(example, row, answer, output, align) for answer in answers])
        return rows

    def answer(self, example: ImageExample, row: int, found: Detections, output: Detected, align: bool) -> Prediction:
        """What is said of things that were found."""
        names = [self.codec.labels[label] for label in found.labels.tolist()]
        boxes = self.codec.pixels(example, to_corners(found.boxes))
        scores = [round(score, 4) for score in found.scores.tolist()]
        said = (
            f"{name} {' '.join(f'{at:.0f}' for at in box)} {score:.2f}"
            for name, box, score in zip(names, boxes, scores, strict=True)
        )
        score = float(found.scores.float().log().mean()) if names else 0.0
        weights = looked(output, row, found.queries) if align and found.queries is not None else None
        links = None if weights is None else [(int(place), piece) for piece, place in enumerate(weights.argmax(-1))]
        pieces, grid = self.codec.pieces(example), self.codec.grid(example) if align else None
        return Prediction("; ".join(said), score, pieces, names, weights, links, grid, boxes, scores)

    def evaluate_examples(self, examples: Sequence[ImageExample], *, beam: int | None = None) -> Metrics:
        """The loss of a thing, and average precision over all labels, at one overlap and at ten."""
        return figures(*self.scored(examples))

    def evaluate_records(self, prepared: Sequence[Annotated], *, beam: int | None = None) -> Metrics:
        """The same for pictures of a table, and the average precision of each label where they are few."""
        table, every = self.scored(self.codec.encode_all(prepared).examples)
        found = figures(table, every)
        if 1 < len(every) <= CLASSES:
            for label, matches in zip(self.codec.labels, loose(every), strict=True):
                if there := int(matches.objects.sum()):
                    found[f"ap50 {label}"] = measure_mean_precision(
                        [matches], f"average precision, IoU 0.5; there are {there:,}"
                    )
        return found

    def scored(self, examples: Sequence[ImageExample]) -> tuple[Rows, list[RankedDetections]]:
        """Of each picture the number of its things and what they cost, and of each label what was found."""
        found, there, rows = list[Detections](), list[Objects](), list[list[float]]()
        for _, batch in self.batches(examples):
            batch = batch.to(next(self.model.parameters()).device)
            output, objects = self.infer(batch), things(batch)
            costs = SetLoss().answer(output, objects)
            rows += [[float(count), float(cost)] for count, cost in zip(objects.keep.sum(1), costs, strict=True)]
            found += [Detections(*(part.cpu() for part in detection[:3])) for detection in detections(output, LEAST, MOST)]
            there += [Objects(labels[keep].cpu(), boxes[keep].cpu()) for labels, boxes, keep in zip(*objects, strict=True)]
        if not sum(count for count, _ in rows):
            raise DataError(f"average precision needs pictures with things on them, got {len(rows):,} with none")
        every = [rank_detections(found, there, number, COCO_THRESHOLDS) for number in range(len(self.codec.labels))]
        return np.array(rows, dtype=np.float64), every

    def trace_parts(self, example: ImageExample, output: Detected) -> ForwardTrace:
        """Each thing that was found over the picture with their boxes; the surest one where it is sure of none."""
        [found] = detections(output, 0.0)
        found = picked(found, max(1, int((found.scores >= SURE).sum())))
        labels = [self.codec.labels[label] for label in found.labels.tolist()]
        names = [f"{label} {score:.2f}" for label, score in zip(labels, found.scores.tolist(), strict=True)]
        picture = framed(self.codec.read_image(example), to_corners(found.boxes), found.labels)
        axes: dict[str, Axis] = {"things": Text.of(names), "picture": image_axis(picture, self.codec.stride)}
        keep = output.proposals.keep[0]
        looks = {
            name: AxisWeights("things", "picture", weights[0][:, found.queries][..., keep])
            for name, weights in output.weights.items()
        }
        return ForwardTrace(axes, looks)


def picked(found: Detections, last: int, first: int = 0) -> Detections:
    """Some of what was found, from the surest down."""
    labels, boxes, scores, queries = found
    part = slice(first, last)
    return Detections(labels[part], boxes[part], scores[part], None if queries is None else queries[part])


def looked(output: Detected, row: int, queries: Int[Tensor, " found"]) -> Float[Tensor, "found places"] | None:
    """Where the last layer looked for each thing, the mean of its heads, over the places of its own picture."""
    if not output.weights:
        return None
    [weights] = list(output.weights.values())[-1:]
    return weights[row].float().mean(0)[queries][:, output.proposals.keep[row]].cpu()


def figures(table: Rows, every: Sequence[RankedDetections]) -> Metrics:
    """What is measured of all pictures."""
    return {
        "loss": Measurement(mean(table.sum(0)), *bootstrap(table, mean), LOSS),
        "map50": measure_mean_precision(loose(every), MAP50),
        "map": measure_mean_precision(every, MAP),
    }


def loose(every: Sequence[RankedDetections]) -> list[RankedDetections]:
    """The same at an overlap of a half alone."""
    return [matches._replace(true_positives=matches.true_positives[:1]) for matches in every]


def things(batch: ImageBatch) -> ObjectBatch:
    """What is on the pictures of a batch of which that is known."""
    if batch.labels is None or batch.boxes is None:
        raise ValueError("a batch needs labels and boxes, and this one has only pictures")
    return ObjectBatch(batch.labels.data.masked_fill(~batch.labels.keep, 0), batch.boxes, batch.labels.keep)


def mean(total: Rows) -> float:
    """The cost of a thing."""
    return float(total[1] / max(total[0], 1.0))
