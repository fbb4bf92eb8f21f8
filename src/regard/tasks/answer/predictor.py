"""Answers to questions about stories, with the sentences that each hop read."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.config import quoted
from regard.data.axis import Axis, Index, Text
from regard.errors import ConfigError, DataError, DataWarning
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.metrics.text import Metrics
from regard.tasks.answer.batch import UNKNOWN, StoryBatch, StoryExample
from regard.tasks.answer.output import StoryAnswer
from regard.tasks.answer.reading import read_stories
from regard.tasks.answer.records import StoryQuestion, parse_input
from regard.tasks.answer.scoring import Scores, collect_scores, score_batch
from regard.viewer.trace import Choice

LISTED = 5
"""Number of answers in a trace."""
INNER = {"words": ("answer", "words"), "blocks": ("answer", "blocks"), "gates": ("blocks", "story")}
"""Axes of the attentions that are not to sentences."""


class StoryAnswerer(ForwardPredictor):
    """An input is STORY TAB QUESTION; with one question about all stories, a story alone."""

    has_tabs = True
    question: str | None = None
    """Question about every story; None where each input has its own."""

    def set_question(self, question: str) -> None:
        """Set the question about every story."""
        self.question = question

    def group_lines(self, lines: Iterator[str]) -> Iterator[str]:
        """Inputs of the lines of a file: with one question about every story, an empty line stands between stories."""
        if self.question is None:
            yield from lines
            return
        story = list[str]()
        for line in lines:
            if line.strip():
                story.append(line)
            elif story:
                yield "\n".join(story)
                story = []
        yield "\n".join(story)

    def complete(self, text: str, number: int = 1) -> str:
        """Story with the question about every story behind it, where there is one."""
        if self.question is None:
            return text
        if not text.strip():
            raise DataError(f"input:{number} has a story with no sentence; write one sentence or more")
        if "\t" in text:
            raise DataError(
                f"--question is for every story, and input {number} has a tab, behind which a question of its own stands, "
                f"{quoted(text)}; leave one of the two out"
            )
        return f"{text}\t{self.question}"

    def parse(self, text: str, number: int) -> StoryQuestion:
        """Record of an input; the question may be set for all stories."""
        record: StoryQuestion = self.task.prepare(parse_input(text if "\t" in text else self.complete(text, number), number))
        return record

    def strip_target(self, record: StoryQuestion) -> StoryQuestion:
        """Question without its answer and facts."""
        return record.without_answer()

    def read_table(self, path: str | os.PathLike[str], **columns: str) -> list[StoryQuestion]:
        """Questions of a file, or of the test files of a folder."""
        if unknown := columns.keys() - set(self.config.data.columns):
            raise ConfigError(f"{min(unknown)} is no column of {self.name}; it has {', '.join(self.config.data.columns)}")
        records = read_stories(replace(self.config.data, **columns), os.fspath(path), "test")
        if bare := [record.where for record in records if record.answer is None]:
            raise DataError(f"{bare[0]} has no answer ({len(bare):,} such in all), which metrics are computed from")
        return [self.task.prepare(record) for record in records]

    def forward(self, batch: StoryBatch, weights: bool = False) -> StoryAnswer:
        """Logits, and the sentences that each hop read."""
        output: StoryAnswer = self.model(batch.source, weights=True)
        return output

    def decode(
        self, examples: Sequence[StoryExample], output: StoryAnswer, best: int, align: bool
    ) -> list[list[Prediction]]:
        """The likeliest answers."""
        assert output.hops is not None, "forward asks for weights"
        chances = output.logits.float().log_softmax(-1).cpu()
        hops = output.hops.float().cpu()
        return [
            self.list_answers(example, chances[row], hops[row, :, : len(example.story)], best, align)
            for row, example in enumerate(examples)
        ]

    def list_answers(
        self,
        example: StoryExample,
        chances: Float[Tensor, " answers"],
        hops: Float[Tensor, "hops sentences"],
        best: int,
        align: bool,
    ) -> list[Prediction]:
        """Answers to one question, with the sentence of the largest weight of each hop; sentences are counted from 0."""
        sentences = self.codec.pieces(example)
        places = hops.argmax(-1).tolist()
        reads = [
            {"sentence": place + example.cut, "text": sentences[place], "weight": round(float(hops[hop, place]), 4)}
            for hop, place in enumerate(places)
        ]
        names = [f"hop {hop + 1}" for hop in range(len(hops))]
        weights = hops if align else None
        links = [(place, hop) for hop, place in enumerate(places)] if align else None
        order = chances.argsort(descending=True, stable=True).tolist()[:best]
        return [
            Prediction(
                self.codec.answers[number], float(chances[number]), sentences, names, weights, links, fields={"hops": reads}
            )
            for number in order
        ]

    def score(self, examples: Sequence[StoryExample]) -> Scores:
        """Scores of questions whose answers are known."""
        rows: list[Any] = [None] * len(examples)
        for indices, batch in self.batches(examples):
            output = self.infer(batch, weights=True)
            for index, row in zip(indices, score_batch([examples[index] for index in indices], output), strict=True):
                rows[index] = row
        return collect_scores(examples, rows)

    def evaluate_examples(self, examples: Sequence[StoryExample], *, beam: int | None = None) -> Metrics:
        """Loss, accuracy, the mean error of the tasks, the share of hops on supporting facts, and the error of each task."""
        if strange := [example.record for example in examples if example.label == UNKNOWN]:
            first = strange[0]
            warnings.warn(
                f"{first.where} has the answer {quoted(first.answer or '')}, which was never seen in training, and counts "
                f"as wrong ({len(strange):,} such in all)",
                DataWarning,
                stacklevel=2,
            )
        return self.score(examples).metrics()

    def trace_parts(self, example: StoryExample, output: StoryAnswer) -> ForwardTrace:
        """Each hop over the sentences, and attentions to words or blocks."""
        assert output.hops is not None, "forward asks for weights"
        chances = output.logits[0].float().log_softmax(-1).cpu()
        order = chances.argsort(descending=True, stable=True).tolist()[:LISTED]
        listed = tuple((self.codec.answers[number], float(chances[number])) for number in order)
        count = len(example.story)
        axes: dict[str, Axis] = {"answer": Text.of([listed[0][0]]), "story": self.codec.axis(example)}
        looks = {
            f"hops.{hop}": AxisWeights("answer", "story", weights[None, None, :count])
            for hop, weights in enumerate(output.hops[0])
        }
        for name, weights in output.inner.items():
            query, key = INNER[name]
            axes |= self.inner_axes(name, example, weights.shape[-1])
            looks[name] = AxisWeights(query, key, weights[0, :, :, : len(axes[key])])
        return ForwardTrace(axes, looks, (Choice(0, *listed[0], listed),))

    def inner_axes(self, name: str, example: StoryExample, size: int) -> dict[str, Axis]:
        """Axes that an attention has beside those of the answer and the story."""
        if name == "words":
            return {"words": Text.of([word for sentence in example.story for word in self.codec.words.shown(sentence)])}
        return {"blocks": Index(size)} if name == "blocks" else {}
