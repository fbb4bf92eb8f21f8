"""Retrieve: a picture in, the texts that fit it out, and the other way round."""

from dataclasses import dataclass, field

from regard.config import Train
from regard.data.image.synthetic import captions
from regard.data.image.synthetic.captions import Captioned
from regard.data.records import Record
from regard.tasks.caption.task import SHAPES, SIZES
from regard.tasks.retrieve.config import RetrieveData, RetrieveDropout, RetrieveModel
from regard.tasks.retrieve.experiment import RetrieveConfig


@dataclass(frozen=True)
class Config(RetrieveConfig):
    """A small residual network, a Transformer that reads, and one layer that looks at both together."""

    data: RetrieveData = field(
        default_factory=lambda: RetrieveData(height=64, width=64, batch_size=32, samples=4500, max_target_length=64)
    )
    model: RetrieveModel = field(default_factory=lambda: RetrieveModel(hidden_size=64, depth=1))
    dropout: RetrieveDropout = field(default_factory=lambda: RetrieveDropout(embedding=0.0, residual=0.0))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=620, learning_rate=3e-3, schedule="cosine", warmup_steps=50, evaluate_every=310, monitor="recall"
        )
    )


def prepare(record: Record) -> Record:
    """Text unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[Captioned], list[Captioned]]:
    """The scenes and captions of `caption`, no caption twice: one coloured shape or two, and how they lie."""
    return captions.draw(samples, seed, shapes=SHAPES, sizes=SIZES, count=1)
