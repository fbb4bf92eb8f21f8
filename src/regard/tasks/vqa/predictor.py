"""Visual question answering: answers, accuracy, and attention of the hops."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.config import quoted
from regard.data.axis import Axis, Text
from regard.data.image.axis import image_axis
from regard.data.image.types import ImageBatch, ImageExample
from regard.errors import DataError
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.losses.classification import compute_credit
from regard.metrics.text import Measurement, Metrics, Rows, bootstrap
from regard.models.encoders.feature_map import downsample_mask
from regard.tasks.classify.predictor import labelled
from regard.tasks.vqa.data import PictureQuestion, parse_input
from regard.tasks.vqa.synthetic import SyntheticQuestion
from regard.viewer.trace import Choice

LOOKS = "looks"
RIGHT = "answers right, in per cent"
ON = "answers whose last look has its largest weight on the box of a thing that decides, in per cent"
LISTED = 5
"""Number of answers in a trace."""


class Answerer(ForwardPredictor):
    """An input is PATH TAB QUESTION. The last look at the picture is what an answer is linked to."""

    question: str | None = None
    """Question about every picture; None where each input has its own."""

    def set_question(self, question: str) -> None:
        """Set the question about every picture."""
        self.question = question

    def complete(self, text: str, number: int = 1) -> str:
        """Path of a picture with the question about every picture behind it, where there is one."""
        if self.question is None or not text.strip():
            return text
        if "\t" in text:
            raise DataError(
                f"--question is for every picture, and input {number} has a question of its own, {quoted(text)}; leave one "
                "of the two out"
            )
        return f"{text}\t{self.question}"

    def parse(self, text: str, number: int) -> PictureQuestion:
        """Record of the path of a picture, a tab, and a question; the tab and the question may be set for all pictures."""
        record: PictureQuestion = self.task.prepare(
            parse_input(text if "\t" in text else self.complete(text, number), number)
        )
        return record

    def strip_target(self, record: PictureQuestion) -> PictureQuestion:
        """Question without its answer."""
        return replace(record, picture=record.picture._replace(target=None))

    def forward(self, batch: ImageBatch, weights: bool = False) -> Any:
        """Logits, and where was looked."""
        return self.model(batch.source, batch.question, about=batch.about, weights=weights)

    def decode(self, examples: Sequence[ImageExample], output: Any, best: int, align: bool) -> list[list[Prediction]]:
        """The likeliest answers."""
        chances = output.logits.float().log_softmax(-1).cpu()
        return [self.answers(example, row, chances[row], output, best, align) for row, example in enumerate(examples)]

    def answers(
        self, example: ImageExample, row: int, chances: Float[Tensor, " answers"], output: Any, best: int, align: bool
    ) -> list[Prediction]:
        """Answers to one question."""
        pieces = self.codec.pieces(example)
        weights = last(output.weights)[row, :, : len(pieces)] if align else None
        links = None if weights is None else [(int(weights[0].argmax()), 0)]
        grid = self.codec.grid(example) if align else None
        order = chances.argsort(descending=True, stable=True).tolist()[:best]
        names = [self.codec.answers[number] for number in order]
        return [
            Prediction(name, float(chances[number]), pieces, [name], weights, links, grid)
            for number, name in zip(order, names, strict=True)
        ]

    def evaluate_examples(self, examples: Sequence[ImageExample], *, beam: int | None = None) -> Metrics:
        """The loss of a question, how many are answered right and, where pictures were drawn, looked for in the right place.

        A question that is too long to be read is not answered.
        """
        read = set(self.codec.select_fitting([example.record for example in examples]))
        rows = [
            [*row[:2], row[2] * (index in read), *row[3:]]
            for indices, batch in self.batches(examples)
            for index, row in zip(indices, self.scored([examples[index] for index in indices], batch), strict=True)
        ]
        table: Rows = np.array(rows, dtype=np.float64)

        def share(column: int, of: int, scale: float = 1.0) -> Any:
            return lambda total: float(scale * total[column] / max(total[of], 1.0))

        scores = {"loss": (share(1, 0), "nats a question"), "accuracy": (share(2, 0, 100.0), RIGHT)}
        scores |= {LOOKS: (share(3, 4, 100.0), ON)} if table[:, 4].any() else {}
        return {
            name: Measurement(score(table.sum(0)), *bootstrap(table, score), said) for name, (score, said) in scores.items()
        }

    def scored(self, examples: Sequence[ImageExample], batch: ImageBatch) -> list[list[float]]:
        """Statistics of each question: 1, its loss, whether it is right, and both numbers of `count_hit`."""
        sample = [example.picture if isinstance(example.picture, SyntheticQuestion) else None for example in examples]
        output = self.infer(batch, weights=any(sample))
        logits, wanted = output.logits.float().cpu(), labelled(batch).data[:, 0].cpu()
        loss = -logits.log_softmax(-1).gather(1, wanted[:, None])[:, 0]
        right = compute_credit(logits, wanted)
        looks = last(output.weights) if any(sample) else torch.zeros(len(examples), 1, 1)
        return [
            [1.0, float(loss[row]), float(right[row]), *count_hit(sample[row], looks[row, 0], self.codec.stride)]
            for row in range(len(examples))
        ]

    def trace_parts(self, example: ImageExample, output: Any) -> ForwardTrace:
        """Each look over the words of the question, and over the picture."""
        picture, words = image_axis(self.codec.read_image(example), self.codec.stride), self.codec.words(example)
        text, end = self.codec.prepare(example.record.question), len(words) - 1
        spans = tuple((piece.start, piece.end) if piece.start < piece.end else None for piece in words)
        chances = output.logits[0].float().log_softmax(-1).cpu()
        order = chances.argsort(descending=True, stable=True).tolist()[:LISTED]
        listed = tuple((self.codec.answers[number], float(chances[number])) for number in order)
        axes: dict[str, Axis] = {
            "answer": Text.of([listed[0][0]]),
            "question": Text(tuple(piece.text for piece in words), text, spans, (end,)),
            "picture": picture,
        }
        sizes = {"words": ("question", len(words)), "regions": ("picture", len(picture))}
        looks = {}
        for name, weights in output.weights.items():
            axis, size = sizes[name.rpartition(".")[2]]
            looks[name] = AxisWeights("answer", axis, weights[0, ..., :size])
        return ForwardTrace(axes, looks, (Choice(0, *listed[0], listed),))


def last(weights: Any) -> Float[Tensor, "batch 1 places"]:
    """The last look at the picture, the mean of its heads."""
    name = [name for name in weights if name.endswith("regions")][-1]
    last_weights: Tensor = weights[name].float().mean(1).cpu()
    return last_weights


def count_hit(sample: SyntheticQuestion | None, weights: Float[Tensor, " places"], stride: int) -> tuple[float, float]:
    """Numbers, 0 or 1: the largest weight lies on a relevant object, and such an object is known."""
    region = None if sample is None else sample.region
    if region is None:
        return 0.0, 0.0
    return float(downsample_mask(region[None], stride)[0].flatten()[int(weights.argmax())]), 1.0
