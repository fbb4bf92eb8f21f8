"""Recurrent attention classifier: the label of a picture, and the locations of the glimpses."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.data.axis import Axis, Text
from regard.data.image.axis import image_axis
from regard.data.image.types import ImageBatch, ImageExample
from regard.inference.forward_predictor import AxisWeights, ForwardTrace
from regard.tasks.classify.loss import average_probabilities
from regard.tasks.classify.predictor import Classifier, ClassifierOutput, Where

GLIMPSES = "glimpses"
SEED = 0
ACROSS = 14
"""The most rows or columns of a map in characters."""


class Glimpser(Classifier):
    """It looks step by step, and its places are pixels."""

    def forward(self, batch: ImageBatch, weights: bool = False) -> ClassifierOutput:
        """The mean of what is said after each of model.eval_episodes ways over a picture, of which the first is shown."""
        outputs = [
            self.model(batch.source, weights=weights and not number, offsets=offsets)
            for number, offsets in enumerate(
                sample_offsets(self.config.model.eval_episodes, self.config.model.glimpses, batch.source.data.device)
            )
        ]
        mask = batch.source.keep.flatten(1)
        return ClassifierOutput(
            average_probabilities(torch.stack([run.logits for run in outputs])), outputs[0].weights, mask
        )

    def pointed(self, example: ImageExample) -> bool:
        """Never: a glimpse is of no label."""
        return False

    def where(self, example: ImageExample, row: int, output: ClassifierOutput, labels: Sequence[int]) -> Where:
        """Attention map of each glimpse, on a grid that is coarse enough to be read."""
        weights = output.weights[GLIMPSES][row, 0][:, output.mask[row]].float().cpu()
        coarse = coarser(torch.unflatten(weights, 1, self.codec.grid(example)))
        rows, columns = coarse.shape[1:]
        places = [f"{down + 1},{across + 1}" for down in range(rows) for across in range(columns)]
        return Where(places, steps(len(coarse)), coarse.flatten(1), (rows, columns))

    def trace_parts(self, example: ImageExample, output: ClassifierOutput) -> ForwardTrace:
        """Each glimpse over the picture, and what was said after the last."""
        weights = output.weights[GLIMPSES][0]
        axes: dict[str, Axis] = {
            "glimpse": Text.of(steps(weights.shape[1])),
            "picture": image_axis(self.codec.read_image(example), 1),
        }
        chances = self.likely(output.logits)[0]
        said = self.choice(weights.shape[1] - 1, self.select_labels(chances)[0][0], chances)
        return ForwardTrace(axes, {GLIMPSES: AxisWeights("glimpse", "picture", weights[..., output.mask[0]])}, (said,))


def sample_offsets(runs: int, count: int, device: torch.device) -> Float[Tensor, "runs count 2"]:
    """Fixed random offsets of the glimpses of each episode; 0 for the first.

    They are the same for every picture, so that an answer does not depend on the batch.
    """
    offsets = torch.randn(runs, count, 2, generator=torch.Generator().manual_seed(SEED))
    offsets[0] = 0.0
    return offsets.to(device)


def steps(count: int) -> list[str]:
    """Names of the glimpses."""
    return [f"glimpse {number + 1}" for number in range(count)]


def coarser(maps: Float[Tensor, "steps height width"], most: int = ACROSS) -> Float[Tensor, "steps rows columns"]:
    """The sum of each square of places, squares being as small as leaves at most so many rows and columns."""
    side = -(-max(maps.shape[1:]) // most)
    filled = F.pad(maps, (0, -maps.shape[2] % side, 0, -maps.shape[1] % side))
    return F.avg_pool2d(filled, side) * side**2
