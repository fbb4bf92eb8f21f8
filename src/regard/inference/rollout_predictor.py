"""Predictor of models whose decoder outputs numbers: forecasts of a series, frames of a spectrogram."""

from collections.abc import Sequence
from io import StringIO
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.data.axis import Axis
from regard.decoding.max_length import limit_lengths
from regard.decoding.rollout import Rollout, roll_out
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.metrics.text import Metrics


class RolloutPredictor(ForwardPredictor):
    """Trained model that is rolled out: each output is the next input, until a length or a learned stop.

    The text of a prediction is what its codec writes to a file. It has no score, since numbers have no distribution here.
    """

    def forward(self, batch: Any, weights: bool = False) -> Rollout:
        """Rollout after each source of a batch, of at most search.max_length steps."""
        search = self.config.search
        lengths = limit_lengths(batch.source, search.max_length, search.max_length_ratio)
        memory = self.model.encode(batch.source)
        return roll_out(self.model.decoder, memory, batch.source, self.codec.feedback, length=lengths, weights=weights)

    def scores(self, output: Rollout) -> Float[Tensor, "batch *scores"]:
        """Numbers of a rollout: where one of an example is not finite, it has no answer."""
        return output.output.data

    def decode(self, examples: Sequence[Any], output: Rollout, best: int, align: bool) -> list[list[Prediction]]:
        """The one answer to each example."""
        if best != 1:
            raise ValueError(f"a decoder of numbers has one answer to each input, got best={best}")
        return [[self._predict(example, row, output, align)] for row, example in enumerate(examples)]

    def _predict(self, example: Any, row: int, output: Rollout, align: bool) -> Prediction:
        numbers, file = self._numbers(output, row), StringIO()
        self.codec.write(self.codec.decode(numbers), file)
        source, target = self.codec.pieces(example), self.codec.target_pieces(numbers)
        weights = None
        if align and output.weights:
            *_, last = output.weights.values()
            weights = last[row].float().mean(0)[: len(target), : len(source)].cpu()
        return Prediction(file.getvalue().rstrip("\n"), 0.0, source, target, weights, grid=self.codec.grid(example))

    def _numbers(self, output: Rollout, row: int) -> Float[Tensor, "time channels"]:
        """Numbers of one row, without its padding."""
        return output.output.data[row][output.output.keep[row]].cpu()

    def trace_parts(self, example: Any, output: Rollout) -> ForwardTrace:
        """Weights of the attentions over the source at each step."""
        numbers = self._numbers(output, 0)
        axes: dict[str, Axis] = {"source": self.codec.axis(example), "target": self.codec.target_axis(numbers)}
        attentions = {
            name: AxisWeights("target", "source", weights[0][:, : len(numbers)]) for name, weights in output.weights.items()
        }
        return ForwardTrace(axes, attentions)

    def evaluate_examples(self, examples: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """Metrics of the task on what the rollouts after the sources, and the targets, decode to."""
        outputs: list[Any] = [None] * len(examples)
        for indices, batch in self.batches(examples):
            output = self.infer(batch)
            for row, index in enumerate(indices):
                outputs[index] = self.codec.decode(self._numbers(output, row))
        references = [self.codec.decode(example.target) for example in examples]
        sources = [example.record.source for example in examples]
        metrics: Metrics = self.task.measure(outputs, references, sources, self.config)
        return metrics
