"""Vqa: a picture and a question about it in, the answer out."""

from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import ImageDropout, Train
from regard.data.image.synthetic import questions
from regard.data.image.synthetic.questions import SceneQuestion
from regard.tasks.vqa.config import VqaData, VqaModel
from regard.tasks.vqa.data import Inquiry
from regard.tasks.vqa.experiment import AskConfig

KINDS = ("colour", "shape", "exists", "where")
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring")
SIDE = 48
"""The pixels on a side of a drawn picture."""
RADII = (40, 48)
"""The smallest and the largest thing: such as are soon told apart on so small a picture."""


@dataclass(frozen=True)
class Config(AskConfig):
    """A small residual network, a Transformer that reads the question, and two looks at the map."""

    SIDE: ClassVar[int] = SIDE

    data: VqaData = field(default_factory=lambda: VqaData(height=64, width=64, batch_size=18, samples=24000))
    model: VqaModel = field(default_factory=lambda: VqaModel(hidden_size=64, depth=1, map_positions="none"))
    dropout: ImageDropout = field(default_factory=lambda: ImageDropout(embedding=0.0, residual=0.0))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=800, learning_rate=2.5e-3, schedule="cosine", warmup_steps=50, evaluate_every=400, monitor="accuracy"
        )
    )


def prepare(record: Inquiry) -> Inquiry:
    """As it stands."""
    return record


def draw(samples: int, seed: int) -> tuple[list[SceneQuestion], list[SceneQuestion]]:
    """Up to eight questions about two things; to count them, and how they lie to each other, takes a longer training."""
    return questions.draw(samples, seed, each=8, kinds=KINDS, shapes=SHAPES, most=2, radii=RADII)
