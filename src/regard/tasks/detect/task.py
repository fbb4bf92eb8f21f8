"""Detect: a picture in, what is on it and where out."""

from dataclasses import dataclass, field

from regard.config import ImageDropout, Train
from regard.data.image.synthetic import boxes
from regard.tasks.detect.config import DetectData, DetectModel
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.experiment import DetectConfig
from regard.tasks.detect.synthetic import Drawn

SIDE = 64
"""The pixels on a side of a drawn picture."""
MOST = 4
"""The most things on it."""


@dataclass(frozen=True)
class Config(DetectConfig):
    """A small residual network, and a decoder whose queries each find one thing on its map."""

    data: DetectData = field(default_factory=lambda: DetectData(height=SIDE, width=SIDE, samples=2000))
    model: DetectModel = field(default_factory=lambda: DetectModel(hidden_size=64, depth=1, stride=4, layers=2, queries=16))
    dropout: ImageDropout = field(default_factory=lambda: ImageDropout(residual=0.0))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=500, learning_rate=2e-3, schedule="cosine", warmup_steps=50, evaluate_every=250, monitor="map50"
        )
    )


def prepare(given: Annotated) -> Annotated:
    """As it stands."""
    return given


def draw(samples: int, seed: int) -> tuple[list[Drawn], list[Drawn]]:
    """One to four things of eight shapes, any size and colour; their shapes are the labels."""
    training, valid = boxes.draw(samples, seed, most=MOST)
    return [Drawn(each, SIDE) for each in training], [Drawn(each, SIDE) for each in valid]
