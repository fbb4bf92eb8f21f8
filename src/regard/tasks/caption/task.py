"""Caption: a picture in, its description out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from regard.config import AttentionPart, ImageDropout, ImageTextData, ImageToTextModel, Train
from regard.data.image.synthetic import captions
from regard.data.image.synthetic.captions import Captioned
from regard.data.table import Record
from regard.metrics.text import Bleu, Chrf, ExactMatch, Metrics
from regard.metrics.text import measure as measured
from regard.tasks.caption.experiment import PictureConfig

SIDE = 48
"""Pixels on a side of a synthetic picture."""
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring")
SIZES = ("medium", "big")


@dataclass(frozen=True)
class Config(PictureConfig):
    """A small residual network, and a Transformer decoder that attends to its feature map."""

    SIDE: ClassVar[int] = SIDE

    data: ImageTextData = field(default_factory=lambda: ImageTextData(height=64, width=64, batch_size=18, samples=4500))
    model: ImageToTextModel = field(
        default_factory=lambda: ImageToTextModel(
            hidden_size=64, depth=1, decoder="transformer", layers=2, attention=AttentionPart("transformer")
        )
    )
    dropout: ImageDropout = field(default_factory=lambda: ImageDropout(embedding=0.0, residual=0.0))
    train: Train = field(
        default_factory=lambda: Train(
            max_steps=1150, learning_rate=3e-3, schedule="cosine", warmup_steps=100, evaluate_every=230
        )
    )


def prepare(record: Record) -> Record:
    """The record unchanged."""
    return record


def finish(text: str) -> str:
    """The text unchanged."""
    return text


def synthesise(samples: int, seed: int) -> tuple[list[Captioned], list[Captioned]]:
    """Synthetic scenes of one coloured shape or two, large enough for small pictures."""
    return captions.draw(samples, seed, shapes=SHAPES, sizes=SIZES, count=1)


def measure(outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: PictureConfig) -> Metrics:
    """BLEU, chrF and exact match."""
    chinese = any("\u4e00" <= letter <= "\u9fff" for reference in references for letter in reference)
    metric = Bleu(config.data.bleu_tokenizer if config.data.bleu_tokenizer != "auto" else "zh" if chinese else "13a")
    return {
        "bleu": measured(metric, outputs, references),
        "chrf": measured(Chrf(), outputs, references),
        "exact": measured(ExactMatch(), outputs, references),
    }
