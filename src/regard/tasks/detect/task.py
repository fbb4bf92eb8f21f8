"""Detect: a picture in, labelled boxes out."""

from dataclasses import dataclass, field

from regard.config import ImageDropout, Train
from regard.data.image.synthetic import boxes
from regard.tasks.detect.config import DetectData, DetectModel
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.experiment import DetectConfig
from regard.tasks.detect.synthetic import SyntheticScene

SIDE = 64
"""Pixels on a side of a synthetic picture."""
MOST = 4
"""Most objects on a synthetic picture."""


@dataclass(frozen=True)
class Config(DetectConfig):
    """A small residual network, and a decoder whose object queries attend to its feature map."""

    data: DetectData = field(default_factory=lambda: DetectData(height=SIDE, width=SIDE, samples=2000))
    model: DetectModel = field(default_factory=lambda: DetectModel(hidden_size=64, depth=1, stride=4, layers=2, queries=16))
    dropout: ImageDropout = field(default_factory=lambda: ImageDropout(residual=0.0))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=500, learning_rate=2e-3, schedule="cosine", warmup_steps=50, evaluate_every=250, monitor="map50"
        )
    )


def prepare(annotated: Annotated) -> Annotated:
    """The record unchanged."""
    return annotated


def synthesise(samples: int, seed: int) -> tuple[list[SyntheticScene], list[SyntheticScene]]:
    """Synthetic scenes of one to four objects of eight shapes; their shapes are the labels."""
    training, valid = boxes.draw(samples, seed, most=MOST)
    return [SyntheticScene(sample, SIDE) for sample in training], [SyntheticScene(sample, SIDE) for sample in valid]
