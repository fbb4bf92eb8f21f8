"""Evaluation: how good a model has become, and which weights are published."""

import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch

from regard.training import checkpoint
from regard.training import publish as results
from regard.training.ema import mean_of_checkpoints
from regard.training.log import Log
from regard.training.progress import Display
from regard.training.run_directory import MODEL, RunDirectory
from regard.training.seed import reseed
from regard.training.signals import Interruption
from regard.training.state_dict import restore
from regard.training.step import Update


class Evaluator:
    """Evaluates what a training has come to, publishes the best, and leaves the final model in the directory."""

    log: Log
    display: Display

    def __init__(self, update: Update, run: RunDirectory, interruption: Interruption):
        self.update, self.directory, self.interruption = update, run, interruption
        self.experiment, self.settings, self.state = update.experiment, update.settings, update.state
        self.saved, self.published = results.resume(run, self.state)

    def evaluate(self) -> dict[str, float]:
        """The figures of the weights that would be published now: their moving average where there is one."""
        model, average = self.state.model.eval(), self.state.average
        reseed(self.settings.seed, self.state.counters.step, self.update.device)
        published = nullcontext() if average is None else average.inside(model)
        try:
            with published, torch.no_grad(), self.update.autocast(), self.interruption.at_once():
                return {name: float(value) for name, value in self.experiment.evaluate(model).items()}
        finally:
            model.train()

    def record(self, figures: dict[str, float]) -> None:
        """Publish the model if it is the best so far.

        The counters decide on early stopping and follow from the training alone. What is published has to beat the model in
        the directory, which a kill may have left newer than the checkpoint that the training was resumed from.
        """
        value, counters = self.experiment.monitored_value(figures), self.state.counters
        step = counters.evaluated = counters.step
        regular = self.settings.evaluate_every > 0 and step % self.settings.evaluate_every == 0
        counters.stale += regular  # an evaluation that is only made because the run ends must not change how it would go on
        if math.isfinite(value) and (counters.best is None or value < counters.best):
            counters.best, counters.stale = value, 0
        if math.isfinite(value) and (self.published_value is None or value < self.published_value):
            self.publish(figures)
        if regular and self.settings.schedule == "plateau":
            self.state.plateau.see(value)
        self.log.write({"step": step, "valid": figures})
        shown = {name: value for name, value in figures.items() if "." not in name}  # NAME.METRIC: of other predictors
        self.display.say(f"step {step} · valid " + " · ".join(f"{name} {value:.4g}" for name, value in shown.items()))

    @property
    def published_value(self) -> float | None:
        """The monitored metric of the model in the directory; None where there is no model or the metric is not finite."""
        return None if self.published is None else self.published.value

    def publish(self, figures: Mapping[str, float]) -> None:
        """Make the weights of this moment the model of the directory, with their own figures beside it."""
        self.published = results.publish(self.directory, self.state, self.experiment.monitored_value(figures), figures)

    def save(self, seconds: float) -> None:
        """Write a checkpoint, unless this very state has been written."""
        counters, folder = self.state.counters, self.directory.checkpoints
        counters.seconds = seconds
        if self.saved != (counters.step, counters.evaluated):
            self.directory.check()
            checkpoint.save(folder, counters.step, self.state.tensors(), self.state.table())
            keep = max(2, self.settings.keep_checkpoints, self.settings.average_checkpoints)
            checkpoint.prune(folder, keep, self.settings.checkpoint_every)
            self.saved = (counters.step, counters.evaluated)

    def finish(self, reason: str) -> dict[str, Any]:
        """Leave the final model in the directory, and in memory."""
        self.display.say(f"finished: {reason}")
        counters, folder = self.state.counters, self.directory.checkpoints
        if self.settings.average_checkpoints:
            steps = {*checkpoint.regular(folder, self.settings.checkpoint_every), counters.step}
            restore(self.state.model, mean_of_checkpoints(folder, sorted(steps)[-self.settings.average_checkpoints :]))
            self.state.average = None
        if self.settings.average_checkpoints or self.published_value is None:
            self.publish(self.evaluate())
        assert self.published is not None
        restore(self.state.model, results.load_published_weights(self.directory), str(self.directory.path / MODEL))
        return results.write_metrics(self.directory, self.state, self.published, reason)
