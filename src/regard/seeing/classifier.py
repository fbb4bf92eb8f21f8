"""A classifier that was trained: which labels a picture has, and where each was seen."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.batch import Padded
from regard.data.image.pictured import PictureBatch, Pictured
from regard.families import Figures
from regard.prediction import Prediction
from regard.seeing import Glance, Seeing, Shown
from regard.training.labels import any_labels, credit, one_label
from regard.training.metrics import Measured, Rows, bootstrap
from regard.viewer.axes import Axis, Text
from regard.viewer.record.shown import shown

ALL = "all labels right, in per cent"
ONE = "labels right, in per cent"
F1 = "labels of all pictures as one list: 2 TP / (2 TP + FP + FN), in per cent"


class Classifier(Seeing):
    """Any number of labels may hold where the codec says so, each that is likelier than not; otherwise one does."""

    def ask(self, batch: PictureBatch, weights: bool = False) -> Any:
        """Logits, and where was looked."""
        return self.model(batch.source, weights=weights)

    def told(self, examples: Sequence[Pictured], output: Any, best: int, align: bool) -> list[list[Prediction]]:
        """The likeliest labels one by one or, where several may hold and one answer is asked for, all that hold."""
        chances = self.likely(output.logits)
        return [self.answers(example, row, chances[row], output, best, align) for row, example in enumerate(examples)]

    def answers(
        self, example: Pictured, row: int, chances: Float[Tensor, " labels"], output: Any, best: int, align: bool
    ) -> list[Prediction]:
        """What is said of one picture."""
        order = chances.argsort(descending=True, stable=True).tolist()
        if self.codec.several and best == 1:
            held = [[label for label in order if chances[label] > 0.5]]
        else:
            held = [[label] for label in order[:best]]
        pieces = self.codec.pieces(example)
        found = []
        for labels in held:
            names = [self.codec.labels[label] for label in labels]
            score = float(chances[labels].log().mean()) if labels else 0.0
            weights = self.looked(output, row, labels, len(pieces)) if align else None
            links = None if weights is None else [(int(place), piece) for piece, place in enumerate(weights.argmax(-1))]
            grid = self.codec.grid(example) if align else None
            found.append(Prediction(", ".join(names), score, pieces, names, weights, links, grid))
        return found

    def looked(self, output: Any, row: int, labels: Sequence[int], places: int) -> Float[Tensor, "labels places"] | None:
        """Where each label was seen, the mean of the heads; the same for all where no label has a look of its own."""
        if not output.weights:
            return None
        [weights] = list(output.weights.values())[-1:]
        mean = weights[row].float().mean(0)[:, :places].cpu()
        return mean[list(labels)] if mean.shape[0] > 1 else mean.expand(len(labels), -1)

    def likely(self, logits: Float[Tensor, "batch labels"]) -> Float[Tensor, "batch labels"]:
        """How likely each label is."""
        return (logits.float().sigmoid() if self.codec.several else logits.float().softmax(-1)).cpu()

    def judge(self, examples: Sequence[Pictured], *, beam: int | None = None) -> Figures:
        """The loss of a picture, and how many of them are right."""
        rows = [row for _, batch in self.batches(examples) for row in self.scored(batch)]
        table: Rows = np.array(rows, dtype=np.float64)

        def mean(column: int, scale: float = 1.0) -> Any:
            return lambda total: float(scale * total[column] / total[0])

        def f1(total: Rows) -> float:
            return float(200 * total[3] / total[4]) if total[4] else 100.0

        right = ALL if self.codec.several else ONE
        scores = {"loss": (mean(1), "nats a picture"), "accuracy": (mean(2, 100.0), right)}
        scores |= {"f1": (f1, F1)} if self.codec.several else {}
        return {
            name: Measured(score(table.sum(0)), *bootstrap(table, score), said) for name, (score, said) in scores.items()
        }

    def scored(self, batch: PictureBatch) -> list[list[float]]:
        """Of each picture: 1, its loss, whether it is right, labels that were said and hold, and all said or held."""
        logits = self.asked(batch).logits.float().cpu()
        found = []
        if not self.codec.several:
            names = labelled(batch).data[:, 0].cpu()
            right = credit(logits, names)
            for row in range(len(logits)):
                loss = one_label(logits[row : row + 1], names[row : row + 1]).total
                found.append([1.0, float(loss), float(right[row]), 0.0, 0.0])
            return found
        held = wanted(batch, logits.shape[1]).cpu()
        said = logits > 0
        for row in range(len(logits)):
            loss = any_labels(logits[row : row + 1], held[row : row + 1]).total
            both, either = float((said[row] & held[row]).sum()), float(said[row].sum() + held[row].sum())
            found.append([1.0, float(loss), float((said[row] == held[row]).all()), both, either])
        return found

    def shown(self, example: Pictured, output: Any) -> Shown:
        """Each label over the picture."""
        picture = shown(self.codec.seen(example), self.codec.stride)
        axes: dict[str, Axis] = {"label": Text.of(self.codec.labels), "picture": picture}
        looks = {
            name: Glance("label", "picture", _rows(weights[0], len(self.codec.labels))[..., : len(picture)])
            for name, weights in output.weights.items()
        }
        return Shown(axes, looks)


def _rows(weights: Float[Tensor, "heads queries places"], labels: int) -> Float[Tensor, "heads labels places"]:
    """One look for each label, also where all share one."""
    return weights if weights.shape[1] == labels else weights.expand(-1, labels, -1)


def wanted(batch: PictureBatch, labels: int) -> Bool[Tensor, "batch labels"]:
    """Which labels hold for each picture."""
    given = labelled(batch)
    held = torch.zeros(given.data.shape[0], labels + 1, dtype=torch.bool, device=given.data.device)
    held.scatter_(1, given.data.masked_fill(~given.keep, labels), True)
    return held[:, :labels]


def labelled(batch: PictureBatch) -> Padded:
    """The labels of a batch that has some."""
    if batch.labels is None:
        raise ValueError("a batch needs labels to learn or to be judged by, and this one has only pictures")
    return batch.labels
