"""Evaluation of models that write text, and the reward of their sequence training."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from regard.data.feedback import NumberFeedback
from regard.errors import ConfigError
from regard.losses.sequence_risk import Risk
from regard.losses.teacher_forcing import find_feedback, teacher_forcing_loss
from regard.metrics.reward import Reward
from regard.metrics.text import Measurement, token_perplexity
from regard.models.seq2seq import Seq2Seq
from regard.tasks.kinds.types import TaskConfig, Writes


def risk(task: Writes, config: TaskConfig, codec: Any) -> Risk | None:
    """Sequence-level loss on a metric, if the config has one; texts are scored in the form that a person reads."""
    if config.train.sequence_loss == "none":
        return None
    reward = Reward(
        config.train.sequence_metric, lambda numbers: task.finish(codec.decode(numbers)), config.data.bleu_tokenizer
    )
    return Risk(config.train, reward, config.search.max_length, config.search.max_length_ratio)


def measurable(task: Writes, config: TaskConfig, valid: Sequence[Any], more: Sequence[str] = ()) -> None:
    """Raise where train.monitor names no figure of the task, before anything is trained; `more` are those of its family."""
    record = valid[0].record
    known = ["loss", "perplexity"]
    if config.train.monitor not in known:
        right = [record.target or ""]
        figures = task.measure(right, right, [record.source], config).items()
        known += [name for name, value in figures if isinstance(value, Measurement)]
        known += more
    if config.train.monitor not in known:
        raise ConfigError(f"train.monitor needs to be one of {', '.join(known)}, got {config.train.monitor!r}")


def judged(name: str, config: TaskConfig, codec: Any, model: Seq2Seq, valid: Sequence[Any], loader: Any) -> dict[str, float]:
    """Validation of a model in training: its loss on valid and, where that is monitored, the metric of decoded texts."""
    figures = evaluate(model, loader)
    if config.train.monitor in figures:
        return figures
    from regard import tasks
    from regard.inference.sequence_predictor import SequencePredictor

    metrics = SequencePredictor(tasks.bind(name), config, codec, model).evaluate_examples(valid)
    return figures | {name: metric.value for name, metric in metrics.items() if isinstance(metric, Measurement)}


def evaluate(model: nn.Module, loader: Any) -> dict[str, float]:
    """Loss per position on the validation set, without smoothing; of tokens the perplexity too, of numbers the parts."""
    total, positions, parts = 0.0, 0, dict[str, float]()
    device = next(model.parameters()).device
    for _, batch in loader.in_order():
        with torch.no_grad():
            loss = teacher_forcing_loss(model, batch.to(device))
        total, positions = total + float(loss.total), positions + int(loss.tokens)
        parts = {name: parts.get(name, 0.0) + float(value) for name, value in loss.parts.items()}
    figures = {"loss": total / max(positions, 1)}
    if isinstance(find_feedback(model), NumberFeedback):
        return figures | {name: value / max(positions, 1) for name, value in parts.items()}
    return figures | {"perplexity": token_perplexity(total, positions)}
