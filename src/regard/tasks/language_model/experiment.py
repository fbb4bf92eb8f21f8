"""Family of language models: texts without a source."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch

from regard.alignment.heads import Head
from regard.config import Search
from regard.data import table
from regard.data.codec import Report
from regard.data.header import table_settings
from regard.data.lines import bounds
from regard.data.loader import SequenceLoader
from regard.data.table import Record
from regard.data.text import tokenizers
from regard.data.text.codec import Example
from regard.errors import DataError, RefusedError
from regard.losses.teacher_forcing import TeacherForcing
from regard.metrics.text import Measurement
from regard.models.seq2seq import Seq2Seq
from regard.tasks.kinds.sequence import check_monitor, evaluate_outputs
from regard.tasks.kinds.tables import Tables, tables, texts
from regard.tasks.kinds.text import familiar
from regard.tasks.kinds.types import BoundTask, TaskConfig, Writes
from regard.tasks.language_model.codec import LanguageCodec
from regard.tasks.language_model.config import LanguageData, LanguageNetwork
from regard.tasks.language_model.network import build_network
from regard.tasks.language_model.rules import RULES
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.tasks.language_model.predictor import LanguagePredictor

__all__ = ["RULES", "LanguageConfig"]


@dataclass(frozen=True)
class LanguageConfig(TaskConfig):
    """Settings of a language model."""

    FAMILY: ClassVar[str] = "regard.tasks.language_model.experiment"

    data: LanguageData = field(default_factory=LanguageData)
    model: LanguageNetwork = field(default_factory=LanguageNetwork)
    search: Search = field(default_factory=lambda: Search(max_length_ratio=0.0))


def experiment(name: str, task: Writes, config: LanguageConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it opens runs, and their tasks

    begin = start(config, load_codec, out)
    records = load_records(task, config)
    codec = begin.codec if begin else fit_codec(records.train, config)
    examples, report = codec.encode_all(records.train)
    report = report._replace(held_out=records.held_out)
    valid, valid_report = codec.encode_all(records.valid, "truncate")  # every record is evaluated
    if not examples or not valid:
        raise DataError(
            f"too little is left: {report} to train on, {valid_report} to validate with; a longer limit "
            "(data.max_target_length) or data.over_long=truncate keeps more"
        )
    if begin is not None:
        familiar(examples, config.train.init_from)
    check_monitor(task, config, valid)
    torch.manual_seed(config.train.seed)  # equal seeds begin with equal weights
    model = build(config, codec)
    if begin is not None:
        begin.give(model)
    return Experiment(
        model=model,
        codec=codec,
        train=SequenceLoader(examples, config.data.batch_tokens, config.train.seed),
        valid=valid,
        loss=TeacherForcing(config.train, model),
        evaluate=partial(evaluate_outputs, name, config, codec, valid=valid, loader=codec.loader(valid, config.data.budget)),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=False,
    ), report


def load_records(task: Writes, config: LanguageConfig) -> Tables:
    """Texts for training and for validation: of the named tables, or synthetic ones of the task."""
    named = tables(config.data, read, "text", texts)
    splits = Tables(*task.synthesise(config.data.samples, seed=0)) if named is None else named
    return splits.prepared(task.prepare)


def fit_codec(training: Sequence[Record], config: LanguageConfig) -> LanguageCodec:
    """Codec with a tokenizer trained on these texts, or with that of the run data.vocab_from."""
    data = config.data
    if data.vocab_from is not None:
        from regard.inference.load import load  # imported late: it opens runs, and their tasks

        codec = load(data.vocab_from, "cpu").codec
        if not hasattr(codec, "target") or not hasattr(codec, "lowercase"):
            raise RefusedError(
                f"data.vocab_from={data.vocab_from} is a run of a model that writes no text, and has no tokenizer; give "
                "the run whose search the language model is to join"
            )
        return LanguageCodec.wrap(codec.target, data, codec.lowercase)
    written = [record.target.lower() if data.lowercase else record.target for record in training if record.target]
    if not written:
        raise DataError("tokens are learnt from texts, got none")
    tokenizer = tokenizers.train(data.tokenizer, written, data.vocab_size, data.min_frequency)
    return LanguageCodec.wrap(tokenizer, data, data.lowercase)


def build(config: LanguageConfig, codec: LanguageCodec) -> Seq2Seq:
    """The model that a config describes, for the vocabulary of a codec."""
    longest = max(config.data.max_target_length, config.search.max_length + 1)
    return build_network(config.model, config.dropout, codec.target.size, longest)


def build_small(config: LanguageConfig) -> Seq2Seq:
    """The model of a config for a small vocabulary, which validates the settings."""
    return build_network(config.model, config.dropout, 8)


def read(data: LanguageData, path: str) -> list[Record]:
    """The texts of a table, each as its record's source and target."""
    column = data.target
    return list(table.read(path, column, column, bounds=bounds(data), settings=table_settings(data)))


def load_codec(directory: Traversable) -> LanguageCodec:
    """The codec of a run directory."""
    codec = LanguageCodec.load(directory)
    assert isinstance(codec, LanguageCodec), "it is built by the class that loads it"
    return codec


def build_predictor(
    task: BoundTask, config: LanguageConfig, codec: LanguageCodec, model: Seq2Seq, head: Head
) -> "LanguagePredictor":
    """The predictor of a model."""
    from regard.tasks.language_model.predictor import LanguagePredictor

    return LanguagePredictor(task, config, codec, model, head)


def measure_model(trained: "LanguagePredictor", examples: Sequence[Example]) -> dict[str, Measurement]:
    """Metrics of a model beside those of its outputs: perplexity per word."""
    return trained.measure_words(examples)
