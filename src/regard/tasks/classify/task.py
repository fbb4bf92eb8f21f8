"""Classify: a picture or a clip in, one label or several out."""

from dataclasses import dataclass, field

from regard.config import Train
from regard.data.image.synthetic import boxes
from regard.data.image.synthetic.boxes import Boxed
from regard.data.records import Record
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.experiment import ClassifyConfig
from regard.tasks.classify.synthetic import RADII


@dataclass(frozen=True)
class Config(ClassifyConfig):
    """A small residual network, and a learned query for each label that attends to its feature map."""

    data: ClassifyData = field(default_factory=lambda: ClassifyData(height=64, width=64, batch_size=32, samples=4000))
    model: ClassifyModel = field(default_factory=lambda: ClassifyModel(hidden_size=64, depth=1))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=600, learning_rate=3e-3, schedule="cosine", warmup_steps=50, evaluate_every=100, monitor="accuracy"
        )
    )


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[Boxed], list[Boxed]]:
    """Synthetic scenes of one to three objects; their shapes are the labels."""
    return boxes.draw(samples, seed, most=3, radii=RADII)
