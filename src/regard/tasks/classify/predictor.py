"""A classifier that was trained: which labels a picture has, and where each was seen."""

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
"""How many labels a trace shows."""
OTHERS = 8
"""How many it shows beside one that was chosen."""
LEAST = 1e-30
"""The least chance whose logarithm is told."""


class Asked(NamedTuple):
    """What a model makes of a batch, and which places of each map are part of a picture."""

    logits: Float[Tensor, "batch labels"]
    weights: Weights
    kept: Bool[Tensor, "pictures places"]


class Where(NamedTuple):
    """What each piece of an answer looked at, of the pieces of its source; `grid` where these are places of a map."""

    source: list[str]
    target: list[str]
    weights: Float[Tensor, "target source"]
    grid: tuple[int, int] | None = None


class Classifier(ForwardPredictor):
    """Any number of labels may hold where the codec says so, each that is likelier than not; otherwise one does."""

    says = "labels that hold whose largest weight lies on the box of such a thing, in per cent"
    """What `looks` counts."""

    def forward(self, batch: ImageBatch, weights: bool = False) -> Asked:
        """Logits, and where was looked."""
        found = answer(self.model, batch, weights)
        return Asked(found.logits, found.weights, downsample_mask(batch.source.keep, self.codec.stride).flatten(1))

    def decode(self, examples: Sequence[ImageExample], output: Asked, best: int, align: bool) -> list[list[Prediction]]:
        """The likeliest labels one by one or, where several may hold and one answer is asked for, all that hold."""
        chances = self.likely(output.logits)
        return [self.answers(example, row, chances[row], output, best, align) for row, example in enumerate(examples)]

    def answers(
        self, example: ImageExample, row: int, chances: Float[Tensor, " labels"], output: Asked, best: int, align: bool
    ) -> list[Prediction]:
        """What is said of one picture."""
        found = []
        for labels in self.held(chances, best):
            names = [self.codec.labels[label] for label in labels]
            score = float(chances[labels].clamp_min(LEAST).log().mean()) if labels else 0.0
            where = self.where(example, row, output, labels) if align and output.weights else None
            if where is None:
                found.append(Prediction(", ".join(names), score, [], names))
                continue
            links = [(int(place), piece) for piece, place in enumerate(where.weights.argmax(-1))]
            found.append(Prediction(", ".join(names), score, *where[:3], links, where.grid))
        return found

    def held(self, chances: Float[Tensor, " labels"], best: int = 1) -> list[list[int]]:
        """The labels of each of the best answers."""
        order = chances.argsort(descending=True, stable=True).tolist()
        if self.codec.several and best == 1:
            return [[label for label in order if chances[label] > 0.5]]
        return [[label] for label in order[:best]]

    def where(self, example: ImageExample, row: int, output: Asked, labels: Sequence[int]) -> Where:
        """Where each of some labels was seen."""
        names = [self.codec.labels[label] for label in labels]
        return Where(self.codec.pieces(example), names, self.looked(output, row, labels), self.codec.grid(example))

    def looked(self, output: Asked, row: int, labels: Sequence[int]) -> Float[Tensor, "labels places"]:
        """Where each label was seen, the mean of the heads; the same for all where no label has a look of its own."""
        [weights] = list(output.weights.values())[-1:]
        mean = weights[row].float().mean(0)[:, output.kept[row]].cpu()
        return mean[list(labels)] if mean.shape[0] > 1 else mean.expand(len(labels), -1)

    def likely(self, logits: Float[Tensor, "batch labels"]) -> Float[Tensor, "batch labels"]:
        """How likely each label is."""
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
        """Of each picture: 1, its loss, whether it is right, labels that were said and hold, and all said or held; how many
        of its labels are looked at, and how many could be."""
        output = self.infer(batch, weights=any(map(self.pointed, examples)))
        logits, given = output.logits.float().cpu(), labelled(batch)
        if self.codec.several:
            held, said = wanted(batch, logits.shape[1]).cpu(), logits > 0
            loss = F.binary_cross_entropy_with_logits(logits, held.float(), reduction="none").sum(1)
            counts = [(said == held).all(1), (said & held).sum(1), said.sum(1) + held.sum(1)]
        else:
            names = given.data[:, 0].cpu()
            loss = F.cross_entropy(logits, names, reduction="none")
            counts = [compute_credit(logits, names), torch.zeros(len(logits)), torch.zeros(len(logits))]
        hits = torch.tensor([self.hits(example, row, output) for row, example in enumerate(examples)])
        columns = [torch.ones(len(logits)), loss, *counts, *hits.T]
        return torch.stack([column.double() for column in columns], dim=1).numpy()

    def pointed(self, example: ImageExample) -> bool:
        """Whether it is known where the labels of an example should be seen, and the model looks anywhere."""
        return isinstance(example.picture, SyntheticScene) and self.config.model.attention.name != "none"

    def hits(self, example: ImageExample, row: int, output: Asked) -> tuple[int, int]:
        """How many labels of an example are seen where such a thing is, and of how many that is known."""
        if not self.pointed(example) or not isinstance(example.picture, SyntheticScene) or not example.labels:
            return 0, 0
        weights, found = self.looked(output, row, example.labels), 0
        for label, seen in zip(example.labels, weights, strict=True):
            region = example.picture.region(self.codec.labels[label])
            found += bool(downsample_mask(region[None], self.codec.stride)[0].flatten()[int(seen.argmax())])
        return found, len(example.labels)

    def trace_parts(self, example: ImageExample, output: Asked) -> ForwardTrace:
        """Each label over the picture, the likeliest first."""
        chances = self.likely(output.logits)[0]
        order = chances.argsort(descending=True, stable=True).tolist()[:MOST]
        picture = image_axis(self.codec.read_image(example), self.codec.stride)
        axes: dict[str, Axis] = {"label": Text.of([self.codec.labels[label] for label in order]), "picture": picture}
        looks = {
            name: AxisWeights("label", "picture", _rows(weights[0], len(chances))[:, order][..., output.kept[0]])
            for name, weights in output.weights.items()
        }
        held = [label for label in self.held(chances)[0] if label in order]
        return ForwardTrace(axes, looks, tuple(self.choice(order.index(label), label, chances) for label in held))

    def choice(self, query: int, label: int, chances: Float[Tensor, " labels"]) -> Choice:
        """A label that was chosen, and how likely it and the others were."""
        logs = chances.clamp_min(LEAST).log().tolist()
        order = sorted(range(len(logs)), key=lambda each: -logs[each])[:OTHERS]
        others = tuple((self.codec.labels[label], logs[label]) for label in order)
        return Choice(query, self.codec.labels[label], logs[label], others)


def answer(model: nn.Module, batch: ImageBatch, weights: bool = False) -> Any:
    """What a model makes of the pictures of a batch, or of its clips."""
    if batch.frames is None:
        return model(batch.source, weights=weights)
    return model(batch.source, batch.frames, weights=weights)


def _ratio(table: Rows, over: int, under: int, scale: float, said: str) -> Measurement:
    """The sum of a column as a share of that of another, with its interval."""

    def score(total: Rows) -> float:
        return float(scale * total[over] / total[under]) if total[under] else 100.0

    return Measurement(score(table.sum(0)), *bootstrap(table, score), said)


def _rows(weights: Float[Tensor, "heads queries places"], labels: int) -> Float[Tensor, "heads labels places"]:
    """One look for each label, also where all share one."""
    return weights if weights.shape[1] == labels else weights.expand(-1, labels, -1)


def wanted(batch: ImageBatch, labels: int) -> Bool[Tensor, "batch labels"]:
    """Which labels hold for each picture."""
    given = labelled(batch)
    held = torch.zeros(given.data.shape[0], labels + 1, dtype=torch.bool, device=given.data.device)
    held.scatter_(1, given.data.masked_fill(~given.keep, labels), True)
    return held[:, :labels]


def labelled(batch: ImageBatch) -> Padded:
    """The labels of a batch that has some."""
    if batch.labels is None:
        raise ValueError("a batch needs labels, and this one has only pictures")
    return batch.labels
