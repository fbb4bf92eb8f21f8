"""Answer: a story and a question about it in, the answer out."""

from dataclasses import dataclass, field

from regard.config import Dropout
from regard.tasks.answer.config import AnswerModel, AnswerTrain, StoryData
from regard.tasks.answer.experiment import AnswerConfig
from regard.tasks.answer.records import StoryQuestion
from regard.tasks.answer.synthetic import write_stories


@dataclass(frozen=True)
class Config(AnswerConfig):
    """An end-to-end memory network of three hops with adjacent tying, position and temporal encoding."""

    data: StoryData = field(default_factory=StoryData)
    model: AnswerModel = field(default_factory=AnswerModel)
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.0, residual=0.0))
    train: AnswerTrain = field(
        default_factory=lambda: AnswerTrain(
            max_steps=4000,
            learning_rate=5e-3,
            schedule="cosine",
            warmup_steps=100,
            evaluate_every=500,
            monitor="error",
        )
    )


def prepare(record: StoryQuestion) -> StoryQuestion:
    """The record unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[StoryQuestion], list[StoryQuestion]]:
    """Stories of agents, places and things, with questions of one to three facts, of number, and of yes or no."""
    return write_stories(samples, seed)
