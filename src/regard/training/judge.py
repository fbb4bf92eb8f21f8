"""How good a model has become, and which of them is kept."""

import math
from contextlib import nullcontext
from typing import Any

import torch

from regard.training import checkpoint, results
from regard.training.average import mean_of_checkpoints
from regard.training.directory import MODEL, RunDirectory
from regard.training.log import Log, finite
from regard.training.progress import Display
from regard.training.seed import reseed
from regard.training.signals import Interruption
from regard.training.update import Update
from regard.training.weights import restore


class Judge:
    """Evaluates what a training has come to, publishes the best, and leaves the final model in the directory."""

    log: Log
    display: Display

    def __init__(self, update: Update, run: RunDirectory, interruption: Interruption):
        self.update, self.directory, self.interruption = update, run, interruption
        self.experiment, self.settings, self.state = update.experiment, update.settings, update.state
        self.saved = results.resume(run, self.state)

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

    def judge(self, figures: dict[str, float]) -> None:
        """Keep the model if it is the best so far."""
        value, counters = self.experiment.judged(figures), self.state.counters
        step = counters.evaluated = counters.step
        regular = self.settings.evaluate_every > 0 and step % self.settings.evaluate_every == 0
        counters.stale += regular  # an evaluation that is only made because the run ends must not change how it would go on
        if math.isfinite(value) and (counters.best is None or value < counters.best):
            counters.best, counters.best_step, counters.best_figures, counters.stale = value, step, finite(figures), 0
            results.publish(self.directory, self.state)
        if regular and self.settings.schedule == "plateau":
            self.state.plateau.see(value)
        self.log.write({"step": step, "valid": figures})
        self.display.say(f"step {step} · valid " + " · ".join(f"{name} {each:.4g}" for name, each in figures.items()))

    def save(self, seconds: float) -> None:
        """Write a checkpoint, unless this very state has been written."""
        counters, folder = self.state.counters, self.directory.checkpoints
        counters.seconds = seconds
        if self.saved != (counters.step, counters.evaluated):
            checkpoint.save(folder, counters.step, self.state.tensors(), self.state.table())
            keep = max(2, self.settings.keep, self.settings.average)
            checkpoint.prune(folder, keep, self.settings.checkpoint_every)
            self.saved = (counters.step, counters.evaluated)

    def finish(self, reason: str) -> dict[str, Any]:
        """Leave the final model in the directory, and in memory."""
        self.display.say(f"finished: {reason}")
        counters, folder = self.state.counters, self.directory.checkpoints
        if self.settings.average:
            steps = {*checkpoint.regular(folder, self.settings.checkpoint_every), counters.step}
            restore(self.state.model, mean_of_checkpoints(folder, sorted(steps)[-self.settings.average :]))
            self.state.average = None
            counters.best_step, counters.best_figures = counters.step, finite(self.evaluate())
            results.publish(self.directory, self.state)
        elif counters.best is None:
            results.publish(self.directory, self.state)
        restore(self.state.model, results.published(self.directory), str(self.directory.path / MODEL))
        return results.report(self.directory, self.state, reason)
