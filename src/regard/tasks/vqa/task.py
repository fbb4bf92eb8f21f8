"""VQA: a picture and a question in, the answer out."""

from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import ImageDropout, Train
from regard.data.image.synthetic import questions
from regard.data.image.synthetic.questions import SceneQuestion
from regard.tasks.vqa.config import VqaData, VqaModel
from regard.tasks.vqa.data import PictureQuestion
from regard.tasks.vqa.experiment import VqaConfig

KINDS = ("colour", "shape", "exists", "where")
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring")
SIDE = 48
"""Pixels on a side of a synthetic picture."""
RADII = (40, 48)
"""Smallest and largest radius of an object, distinguishable on so small a picture."""


@dataclass(frozen=True)
class Config(VqaConfig):
    """A small residual network, a Transformer encoder of the question, and two hops of attention to the feature map."""

    SIDE: ClassVar[int] = SIDE

    data: VqaData = field(default_factory=lambda: VqaData(height=64, width=64, batch_size=18, samples=24000))
    model: VqaModel = field(default_factory=lambda: VqaModel(hidden_size=64, depth=1, map_positions="none"))
    dropout: ImageDropout = field(default_factory=lambda: ImageDropout(embedding=0.0, residual=0.0))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=800, learning_rate=2.5e-3, schedule="cosine", warmup_steps=50, evaluate_every=400, monitor="accuracy"
        )
    )


def prepare(record: PictureQuestion) -> PictureQuestion:
    """The record unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[SceneQuestion], list[SceneQuestion]]:
    """Up to eight synthetic questions about scenes of two objects."""
    return questions.draw(samples, seed, per_scene=8, kinds=KINDS, shapes=SHAPES, most=2, radii=RADII)
