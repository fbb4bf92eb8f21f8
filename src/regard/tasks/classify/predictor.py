"""Classifier: labels of a picture, with their attention."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.axis import Axis, Text
from regard.data.batch import Padded
from regard.data.image.axis import image_axis
from regard.data.image.types import ImageBatch, ImageExample
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.losses.classification import compute_credit
from regard.metrics.text import Measurement, Metrics, Rows, bootstrap
from regard.models.encoders.feature_map import downsample_mask
from regard.models.readout import Weights
from regard.tasks.classify.synthetic import SyntheticScene
from regard.viewer.trace import Choice

ALL = "all labels right, in per cent"
ONE = "labels right, in per cent"
F1 = "labels of all pictures as one list: 2 TP / (2 TP + FP + FN), in per cent"
LOOKS = "looks"
MOST = 64
"""Most labels of a trace."""
OTHERS = 8
"""Alternatives of a predicted label in a trace."""
LEAST = 1e-30
"""Least probability before the logarithm."""


class ClassifierOutput(NamedTuple):
    """Logits and attention weights of a batch, and the mask of each feature map."""

    logits: Float[Tensor, "batch labels"]
    weights: Weights
    mask: Bool[Tensor, "pictures places"]


class Where(NamedTuple):
    """Attention weights of each piece of an answer over the source; `grid` for a feature map."""

    source: list[str]
    target: list[str]
    weights: Float[Tensor, "target source"]
    grid: tuple[int, int] | None = None


class Classifier(ForwardPredictor):
    """Predictor of labels: with a multi-label codec each above a probability of 0.5, otherwise the most likely."""

    says = "labels that hold whose largest weight lies on the box of such a thing, in per cent"
    """Description of the metric `looks`."""

    def forward(self, batch: ImageBatch, weights: bool = False) -> ClassifierOutput:
        """Logits and attention weights."""
        output = answer(self.model, batch, weights)
        return ClassifierOutput(
            output.logits, output.weights, downsample_mask(batch.source.keep, self.codec.stride).flatten(1)
        )

    def decode(
        self, examples: Sequence[ImageExample], output: ClassifierOutput, best: int, align: bool
    ) -> list[list[Prediction]]:
        """The likeliest labels one by one or, where several may hold and one answer is asked for, all that hold."""
        chances = self.likely(output.logits)
        return [self.answers(example, row, chances[row], output, best, align) for row, example in enumerate(examples)]

    def answers(
        self,
        example: ImageExample,
        row: int,
        chances: Float[Tensor, " labels"],
        output: ClassifierOutput,
        best: int,
        align: bool,
    ) -> list[Prediction]:
        """Predictions of one picture."""
        answers = []
        for labels in self.select_labels(chances, best):
            names = [self.codec.labels[label] for label in labels]
            score = float(chances[labels].clamp_min(LEAST).log().mean()) if labels else 0.0
            where = self.where(example, row, output, labels) if align and output.weights else None
            if where is None:
                answers.append(Prediction(", ".join(names), score, [], names))
                continue
            links = [(int(place), piece) for piece, place in enumerate(where.weights.argmax(-1))]
            answers.append(Prediction(", ".join(names), score, *where[:3], links, where.grid))
        return answers

    def select_labels(self, chances: Float[Tensor, " labels"], best: int = 1) -> list[list[int]]:
        """The labels of each of the best answers."""
        order = chances.argsort(descending=True, stable=True).tolist()
        if self.codec.several and best == 1:
            return [[label for label in order if chances[label] > 0.5]]
        return [[label] for label in order[:best]]

    def where(self, example: ImageExample, row: int, output: ClassifierOutput, labels: Sequence[int]) -> Where:
        """Attention of labels over the picture."""
        names = [self.codec.labels[label] for label in labels]
        return Where(self.codec.pieces(example), names, self.average_weights(output, row, labels), self.codec.grid(example))

    def average_weights(self, output: ClassifierOutput, row: int, labels: Sequence[int]) -> Float[Tensor, "labels places"]:
        """Attention weights of each label, the mean of the heads; equal for all where labels share one query."""
        [weights] = list(output.weights.values())[-1:]
        mean = weights[row].float().mean(0)[:, output.mask[row]].cpu()
        return mean[list(labels)] if mean.shape[0] > 1 else mean.expand(len(labels), -1)

    def likely(self, logits: Float[Tensor, "batch labels"]) -> Float[Tensor, "batch labels"]:
        """Probabilities of the labels."""
        return (logits.float().sigmoid() if self.codec.several else logits.float().softmax(-1)).cpu()

    def evaluate_examples(self, examples: Sequence[ImageExample], *, beam: int | None = None) -> Metrics:
        """The loss of a picture, how many of them are right and, of drawn ones, whether the model looks at what it names."""
        parts = self.batches(examples)
        table: Rows = np.concatenate([self.scored(batch, [examples[index] for index in taken]) for taken, batch in parts])
        scores = {"loss": (1, 0, 1.0, "nats a picture"), "accuracy": (2, 0, 100.0, ALL if self.codec.several else ONE)}
        scores |= {"f1": (3, 4, 200.0, F1)} if self.codec.several else {}
        scores |= {LOOKS: (5, 6, 100.0, self.says)} if table[:, 6].any() else {}
        return {name: _ratio(table, *score) for name, score in scores.items()}

    def scored(self, batch: ImageBatch, examples: Sequence[ImageExample]) -> Rows:
        """Statistics of each picture: 1, its loss, whether it is right, the terms of F1, and both numbers of `hits`.

        The terms of F1 are the labels that were predicted and are right, and the sum of all predicted and all right ones.
        """
        output = self.infer(batch, weights=any(map(self.pointed, examples)))
        logits, targets = output.logits.float().cpu(), labelled(batch)
        if self.codec.several:
            select_labels, said = mark_labels(batch, logits.shape[1]).cpu(), logits > 0
            loss = F.binary_cross_entropy_with_logits(logits, select_labels.float(), reduction="none").sum(1)
            counts = [(said == select_labels).all(1), (said & select_labels).sum(1), said.sum(1) + select_labels.sum(1)]
        else:
            names = targets.data[:, 0].cpu()
            loss = F.cross_entropy(logits, names, reduction="none")
            counts = [compute_credit(logits, names), torch.zeros(len(logits)), torch.zeros(len(logits))]
        hits = torch.tensor([self.hits(example, row, output) for row, example in enumerate(examples)])
        columns = [torch.ones(len(logits)), loss, *counts, *hits.T]
        return torch.stack([column.double() for column in columns], dim=1).numpy()

    def pointed(self, example: ImageExample) -> bool:
        """True where the regions of the labels are known, and the model has an attention."""
        return isinstance(example.picture, SyntheticScene) and self.config.model.attention.name != "none"

    def hits(self, example: ImageExample, row: int, output: ClassifierOutput) -> tuple[int, int]:
        """Number of labels whose attention peaks on such an object, and of labels with known regions."""
        if not self.pointed(example) or not isinstance(example.picture, SyntheticScene) or not example.labels:
            return 0, 0
        weights, hits = self.average_weights(output, row, example.labels), 0
        for label, label_weights in zip(example.labels, weights, strict=True):
            region = example.picture.region(self.codec.labels[label])
            hits += bool(downsample_mask(region[None], self.codec.stride)[0].flatten()[int(label_weights.argmax())])
        return hits, len(example.labels)

    def trace_parts(self, example: ImageExample, output: ClassifierOutput) -> ForwardTrace:
        """Each label over the picture, the likeliest first."""
        chances = self.likely(output.logits)[0]
        order = chances.argsort(descending=True, stable=True).tolist()[:MOST]
        picture = image_axis(self.codec.read_image(example), self.codec.stride)
        axes: dict[str, Axis] = {"label": Text.of([self.codec.labels[label] for label in order]), "picture": picture}
        looks = {
            name: AxisWeights("label", "picture", _rows(weights[0], len(chances))[:, order][..., output.mask[0]])
            for name, weights in output.weights.items()
        }
        select_labels = [label for label in self.select_labels(chances)[0] if label in order]
        return ForwardTrace(axes, looks, tuple(self.choice(order.index(label), label, chances) for label in select_labels))

    def choice(self, query: int, label: int, chances: Float[Tensor, " labels"]) -> Choice:
        """A predicted label, with the log-probabilities of it and of the alternatives."""
        logs = chances.clamp_min(LEAST).log().tolist()
        order = sorted(range(len(logs)), key=lambda index: -logs[index])[:OTHERS]
        others = tuple((self.codec.labels[label], logs[label]) for label in order)
        return Choice(query, self.codec.labels[label], logs[label], others)


def answer(model: nn.Module, batch: ImageBatch, weights: bool = False) -> Any:
    """Output of a model for the pictures of a batch, or for its clips."""
    if batch.frames is None:
        return model(batch.source, weights=weights)
    return model(batch.source, batch.frames, weights=weights)


def _ratio(table: Rows, over: int, under: int, scale: float, said: str) -> Measurement:
    """Ratio of the sums of two columns, with its interval."""

    def score(total: Rows) -> float:
        return float(scale * total[over] / total[under]) if total[under] else 100.0

    return Measurement(score(table.sum(0)), *bootstrap(table, score), said)


def _rows(weights: Float[Tensor, "heads queries places"], labels: int) -> Float[Tensor, "heads labels places"]:
    """One look for each label, also where all share one."""
    return weights if weights.shape[1] == labels else weights.expand(-1, labels, -1)


def mark_labels(batch: ImageBatch, labels: int) -> Bool[Tensor, "batch labels"]:
    """Mask of the labels of each picture."""
    targets = labelled(batch)
    select_labels = torch.zeros(targets.data.shape[0], labels + 1, dtype=torch.bool, device=targets.data.device)
    select_labels.scatter_(1, targets.data.masked_fill(~targets.keep, labels), True)
    return select_labels[:, :labels]


def labelled(batch: ImageBatch) -> Padded:
    """The labels of a batch that has some."""
    if batch.labels is None:
        raise ValueError("a batch needs labels, and this one has only pictures")
    return batch.labels
