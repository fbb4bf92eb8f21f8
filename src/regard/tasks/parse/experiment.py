"""Family of parsers: that of texts, with the prefix tree of the training's targets in the run directory."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from regard import tasks
from regard.alignment.heads import Head
from regard.data.codec import Report
from regard.data.special_tokens import EOS
from regard.data.text.codec import Example, TextCodec
from regard.decoding.constraints.language import CONSTANT
from regard.metrics.text import Measurement
from regard.models.seq2seq import Seq2Seq
from regard.tasks.kinds import text
from regard.tasks.kinds.sequence import evaluate
from regard.tasks.kinds.text import TextConfig, build, build_small, load_codec, measure_model, read
from regard.tasks.kinds.types import BoundTask, Writes
from regard.tasks.parse.predictor import TARGETS, ParsePredictor, load_tree
from regard.training.experiment import Experiment

__all__ = ["build", "build_predictor", "build_small", "experiment", "load_codec", "measure_model", "read"]

QUOTES = ('"', "'")


def experiment(name: str, task: Writes, config: TextConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment of a text task, with a file of the targets, constants left open."""
    trained, report = text.experiment(name, task, config, out)
    examples: Sequence[Example] = trained.train.examples  # type: ignore[attr-defined]  # a loader of texts has them
    codec: Any = trained.codec
    content = json.dumps(list_targets(examples, codec)).encode()
    assess = Evaluation(name, config, codec, trained.valid, content)
    return replace(trained, evaluate=assess, extra_files={TARGETS: content}), report


def list_targets(examples: Sequence[Example], codec: TextCodec) -> dict[str, Any]:
    """Targets as token ids, with CONSTANT for each constant that stands in the source too, and the tokens that these were.

    Constants are what stands in quotes, and numbers: the name of a column may stand in a question as well.
    """
    texts = [spelling.decode("utf-8", "replace") for spelling in codec.target.table]
    targets, constants = dict[tuple[int, ...], None](), set[int]()
    for example in examples:
        symbols, quoted, offered = list[int](), False, {*(example.copies or ())} - {EOS}
        for token in example.target or ():
            text = texts[token] if token < len(texts) else ""
            quoted ^= text in QUOTES
            open_ = token in offered and text not in QUOTES and (quoted or not text or text[0].isdigit())
            symbols.append(CONSTANT if open_ else token)
            constants |= {token} if open_ and text else set()
        targets[tuple(symbols)] = None
    return {"targets": list(map(list, targets)), "constants": sorted(constants)}


class Evaluation:
    """Evaluation while a model is trained: its loss on valid and, where train.monitor needs it, those of decoded queries."""

    def __init__(self, name: str, config: TextConfig, codec: TextCodec, valid: Sequence[Any], content: bytes):
        self.name, self.config, self.codec, self.valid, self.content = name, config, codec, valid, content

    def __call__(self, model: nn.Module) -> dict[str, float]:
        figures = evaluate(model, self.codec.loader(self.valid, self.config.data.budget))
        if self.config.train.monitor in figures:
            return figures
        predictor = ParsePredictor(tasks.bind(self.name), self.config, self.codec, model)
        predictor.tree = load_tree(self.content, "the targets of the training")
        metrics = predictor.evaluate_examples(self.valid)
        return figures | {name: metric.value for name, metric in metrics.items() if isinstance(metric, Measurement)}


def build_predictor(task: BoundTask, config: TextConfig, codec: TextCodec, model: Seq2Seq, head: Head) -> ParsePredictor:
    """Predictor of a model."""
    return ParsePredictor(task, config, codec, model, head)
