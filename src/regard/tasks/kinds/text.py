"""Text to text: the family of tasks that read and write text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch

from regard.alignment.heads import Head
from regard.alignment.pharaoh import attach_links
from regard.config import Data, Model, Train
from regard.data import table
from regard.data.codec import Report
from regard.data.header import table_settings
from regard.data.lines import bounds
from regard.data.loader import SequenceLoader
from regard.data.packing import Packed
from regard.data.special_tokens import EOS, UNK
from regard.data.table import Record
from regard.data.text.codec import Example, TextCodec
from regard.errors import DataError
from regard.losses.teacher_forcing import TeacherForcing
from regard.metrics.text import LOWER_IS_BETTER, Measurement
from regard.models import seq2seq
from regard.models.packing import check_model, check_settings
from regard.models.seq2seq import Seq2Seq
from regard.tasks.kinds.sequence import build_risk, check_monitor, evaluate_outputs
from regard.tasks.kinds.tables import Tables, tables, texts
from regard.tasks.kinds.types import BoundTask, TaskConfig, Writes, family
from regard.training.experiment import Experiment

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor


@dataclass(frozen=True)
class TextConfig(TaskConfig):
    """Everything that a text task can be told; each task has its own defaults."""

    FAMILY: ClassVar[str] = "regard.tasks.kinds.text"

    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)


def experiment(name: str, task: Writes, config: TextConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records.

    `out` is the directory to train into: with train.init_from, a training that goes on there needs the other run no more.
    """
    from regard.inference.init_from import start  # it opens runs, and their tasks

    if config.train.packing_length:  # what cannot be packed is told before anything is read
        check_settings(config.train)
        with torch.device("meta"):
            build_small(config)
    begin = start(config, load_codec, out)
    training, validation, held_out, trained = records(task, config)
    codec = replace(begin.codec, copies=config.model.copy) if begin else fit_codec(training, config)
    if config.data.alignments is not None:
        training = attach_links(training, config.data, codec, trained)
    examples, report = codec.encode_all(training)
    report = report._replace(held_out=held_out)
    valid, valid_report = codec.encode_all(validation, over_long="truncate")  # every record is judged
    if not examples or not valid:
        raise DataError(
            f"too little is left: {report} to train on, {valid_report} to validate with; longer limits "
            "(data.max_source_length, data.max_target_length) or data.over_long=truncate keep more"
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
        train=batches(config, examples),
        valid=valid,
        loss=TeacherForcing(weigh_coverage(config), model, build_risk(task, config, codec)),
        evaluate=partial(evaluate_outputs, name, config, codec, valid=valid, loader=codec.loader(valid, config.data.budget)),
        config=config,
        task=name,
        data_report=report.notes(),
        monitor=config.train.monitor,
        higher_is_better=config.train.monitor not in LOWER_IS_BETTER,
    ), report


def fit_codec(training: Sequence[Record], config: TextConfig) -> TextCodec:
    """Codec with tokenizers trained on these records."""
    return TextCodec.fit(training, config.data, target_tokenizer=config.data.target_tokenizer, copies=config.model.copy)


def weigh_coverage(config: TextConfig) -> Train:
    """Settings of the training with the weight of the coverage loss, 1 beside a coverage vector unless it was set."""
    if config.train.coverage_weight is not None or not config.model.coverage:
        return config.train
    return replace(config.train, coverage_weight=1.0)


def batches(config: TextConfig, examples: Sequence[Example]) -> SequenceLoader | Packed:
    """Loader of the training examples, one a row or several."""
    if config.train.packing_length:
        return Packed(examples, config.train.packing_length, config.data.batch_tokens, config.train.seed)
    return SequenceLoader(examples, config.data.batch_tokens, config.train.seed)


def familiar(examples: Sequence[Example], origin: str | None) -> None:
    """Raise where the tokens that are taken over know nothing of one side of the data."""
    for name, side in (("source", 0), ("target", 1)):
        if all(token in (UNK, EOS) for example in examples for token in example[side] or ()):
            raise DataError(
                f"train.init_from={origin} knows no token of any {name}, and its vocabularies are taken over; is the run of "
                "other languages, or of the other direction?"
            )


def records(task: Writes, config: TextConfig) -> Tables:
    """Records for training and for validation: of the named files, or synthetic ones of the task."""
    home = family(config)
    splits = tables(config.data, home.read, "source", getattr(home, "list_sources", texts))
    if splits is None:
        splits = Tables(*task.synthesise(config.data.samples, seed=0))  # every run of a task learns from the same samples
    return splits.prepared(task.prepare)


def build(config: TextConfig, codec: TextCodec) -> Seq2Seq:
    """The model that a config describes, for the vocabularies of a codec."""
    sizes = codec.source.size, codec.target.size
    counterparts = None if codec.joint else codec.counterparts()
    data, search = config.data, config.search
    longest = data.max_source_length, max(data.max_target_length, search.max_length + 1)
    ends = codec.sentence_ends() if config.model.encoder == "hierarchical" else ()
    return seq2seq.build(config.model, config.dropout, *sizes, data.joint_vocab, counterparts, longest, ends)


def build_small(config: TextConfig) -> Seq2Seq:
    """The model of a config for small vocabularies, to see whether it can be built."""
    model = seq2seq.build(config.model, config.dropout, 8, 8, joint=config.data.joint_vocab)
    if config.train.packing_length:
        check_model(model)
    return model


def read(data: Data, path: str) -> list[Record]:
    """The records of a table."""
    return list(table.read(path, data.source, data.target, bounds=bounds(data), settings=table_settings(data)))


def load_codec(directory: Traversable) -> TextCodec:
    """Codec of a run."""
    return TextCodec.load(directory)


def build_predictor(
    task: BoundTask, config: TextConfig, codec: TextCodec, model: Seq2Seq, head: Head
) -> "SequencePredictor":
    """The model, ready to be asked."""
    from regard.inference.sequence_predictor import SequencePredictor

    return SequencePredictor(task, config, codec, model, head)


def measure_model(trained: "SequencePredictor", examples: Sequence[object]) -> dict[str, Measurement]:
    """No metrics beside those of the outputs."""
    return {}
