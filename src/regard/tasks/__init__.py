"""Tasks: what is learned, one file each.

A task's file says what a record looks like to the model (`prepare`), what the model's text means to a person (`finish`),
what to train on when no file is given (`draw`) and how good an output is (`measure`), and holds its `Config`. Here is what
they share: a text in, a text out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import torch
from torch import nn

from regard import lookup
from regard.config import ConfigError, Data, Dropout, Model, Search, Train
from regard.data import table
from regard.data.loader import Loader
from regard.data.table import Record
from regard.data.text import Example, Report, TextCodec
from regard.models import seq2seq
from regard.models.seq2seq import Seq2Seq
from regard.training.experiment import Experiment
from regard.training.guided import linked
from regard.training.losses import Teacher, perplexity, teach
from regard.training.metrics import DOWNWARDS, Bucket, Measured
from regard.training.reward import Reward
from regard.training.risk import Risk

Figures = dict[str, Measured | list[Bucket]]
"""What a task measures, by name: scores with their intervals, and scores by length."""


@dataclass(frozen=True)
class TextConfig:
    """Everything that a text task can be told; each task has its own defaults."""

    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    dropout: Dropout = field(default_factory=Dropout)
    train: Train = field(default_factory=Train)
    search: Search = field(default_factory=Search)


@runtime_checkable
class Task(Protocol):
    """The face of a task's module."""

    Config: type[TextConfig]

    def prepare(self, record: Record) -> Record: ...

    def finish(self, text: str) -> str: ...

    def draw(self, samples: int, seed: int) -> tuple[list[Record], list[Record]]: ...

    def measure(
        self, outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: TextConfig
    ) -> Figures: ...


def find(name: str) -> Task:
    """The task called `name`."""
    return cast(Task, lookup.load(lookup.locate(name, "tasks"), name))


def experiment(name: str, config: TextConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records.

    `out` is the directory to train into: with train.start, a training that goes on there needs the other run no more.
    """
    from regard.start import start  # it opens runs, and their tasks

    task, begin = find(name), start(config, out)
    training, validation = records(task, config)
    codec = begin.codec if begin else TextCodec.fit(training, config.data, target_tokens=config.data.target_tokens)
    if config.data.alignments is not None:
        training = linked(training, config.data, codec)
    examples, report = codec.encode_all(training)
    valid, held = codec.encode_all(validation, over_long="cut")  # every record is judged
    if not examples or not valid:
        raise table.DataError(
            f"too little is left: {report} to train on, {held} to validate with; longer limits (data.longest_source, "
            "data.longest_target) or data.over_long=cut keep more"
        )
    measurable(task, config, valid)
    torch.manual_seed(config.train.seed)  # equal seeds begin with equal weights
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    return Experiment(
        model=model,
        codec=codec,
        train=Loader(examples, config.data.batch_tokens, config.train.seed),
        valid=valid,
        loss=Teacher(config.train, model, risk(task, config, codec)),
        evaluate=partial(judged, name, config, codec, valid=valid),
        config=config,
        task=name,
        notes=report._asdict(),
        better=config.train.better,
        upwards=config.train.better not in DOWNWARDS,
    ), report


def records(task: Task, config: TextConfig) -> tuple[list[Record], list[Record]]:
    """What to train on and what to validate with: the files that are named, or what the task draws itself."""
    data = config.data
    if data.train is None and data.valid is not None:
        raise table.DataError("data.valid is given and data.train is not: name a file to train on")
    if data.train is None:
        training, validation = task.draw(data.samples, seed=0)  # every run of a task learns from the same samples
    elif data.valid is None:
        raise table.DataError("data.train is given and data.valid is not: name a file to validate with")
    else:
        training, validation = (list(table.read(path, data.source, data.target)) for path in (data.train, data.valid))
    return [task.prepare(each) for each in training], [task.prepare(each) for each in validation]


def build(config: TextConfig, codec: TextCodec) -> Seq2Seq:
    """The model that a config describes, for the vocabularies of a codec."""
    sizes = codec.source.size, codec.target.size
    counterparts = None if codec.joint else codec.counterparts()
    data, search = config.data, config.search
    longest = data.longest_source, max(data.longest_target, search.length + 1)
    return seq2seq.build(config.model, config.dropout, *sizes, data.joint, counterparts, longest)


def risk(task: Task, config: TextConfig, codec: TextCodec) -> Risk | None:
    """What trains on a metric, where the config asks for that; texts are judged as a person reads them."""
    if config.train.risk == "none":
        return None
    reward = Reward(config.train.risk_metric, lambda numbers: task.finish(codec.decode(numbers)), config.data.bleu)
    return Risk(config.train, reward, config.search.length)


def measurable(task: Task, config: TextConfig, valid: Sequence[Example]) -> None:
    """Raise where train.better names no figure of the task, before anything is trained."""
    record = valid[0].record
    known = ["loss", "perplexity"]
    if config.train.better not in known:
        right = [record.target or ""]
        figures = task.measure(right, right, [record.source], config).items()
        known += [name for name, found in figures if isinstance(found, Measured)]
    if config.train.better not in known:
        raise ConfigError(f"train.better needs to be one of {', '.join(known)}, got {config.train.better!r}")


def judged(name: str, config: TextConfig, codec: TextCodec, model: Seq2Seq, valid: Sequence[Example]) -> dict[str, float]:
    """What is known of a model while it is trained: its loss on valid and, where that decides, how well it decodes."""
    figures = evaluate(config, model, valid)
    if config.train.better in figures:
        return figures
    from regard.trained import Trained

    measured = Trained(name, config, codec, model).measure([example.record for example in valid])
    return figures | {each: found.value for each, found in measured.items() if isinstance(found, Measured)}


def evaluate(config: TextConfig, model: nn.Module, valid: Sequence[Example]) -> dict[str, float]:
    """Loss a token and perplexity on the validation set, without smoothing."""
    total, tokens = 0.0, 0
    device = next(model.parameters()).device
    for _, batch in Loader(valid, config.data.batch_tokens, shuffle=False).in_order():
        with torch.no_grad():
            found = teach(model, batch.to(device))
        total, tokens = total + float(found.total), tokens + int(found.tokens)
    return {"loss": total / max(tokens, 1), "perplexity": perplexity(total, tokens)}
