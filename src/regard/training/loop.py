"""The training loop: one for every task.

Whatever happens, a run that is started again goes on from its newest whole checkpoint and arrives at the same weights, bit
for bit (on one machine, with one version of torch and one number of threads), as if nothing had happened: batches and
dropout are pure functions of (seed, step), and everything else that changes is in the checkpoint.
"""

import math
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch

from regard.data.batch import Batch
from regard.training import checkpoint, results
from regard.training.ahead import Ahead
from regard.training.average import Average, mean_of_checkpoints
from regard.training.device import choose
from regard.training.directory import MODEL, RunDirectory
from regard.training.errors import FailedError, Interrupted, TrainingError
from regard.training.experiment import Experiment, Loss, Progress
from regard.training.gradient import advice, gradient, out_of_memory, per_token
from regard.training.health import Health
from regard.training.log import Log, finite
from regard.training.optimise import LARGEST, clip, optimiser, set_rate
from regard.training.progress import Display, display
from regard.training.schedule import Plateau, rate
from regard.training.seed import deterministic, reseed
from regard.training.signals import Interruption
from regard.training.speed import Speed
from regard.training.state import State
from regard.training.weights import restore


def train(experiment: Experiment, directory: Path | str, *, quiet: bool = False) -> dict[str, Any]:
    """Train into a directory, from the beginning or from where an earlier run got to; returns what metrics.json says.

    Afterwards the experiment's model is the one that the directory holds.
    """
    settings = experiment.config.train
    with ExitStack() as stack:
        run = stack.enter_context(RunDirectory(Path(directory)))
        run.claim(experiment)
        loop = Loop(experiment, run, stack.enter_context(Interruption()))
        loop.batches = stack.enter_context(Ahead(experiment.train))
        loop.log = stack.enter_context(Log(run.path, loop.counters.step, settings.tensorboard))
        loop.display = stack.enter_context(display(settings.max_steps, quiet))
        stack.enter_context(deterministic(settings.deterministic))
        try:
            return loop.run()
        except (RuntimeError, MemoryError) as error:
            if out_of_memory(error) and not isinstance(error, TrainingError):
                raise FailedError(advice(error, f"at step {loop.counters.step}")) from error
            raise


class Loop:
    """A training under way. What it needs to go on elsewhere is all in `state`."""

    batches: Ahead
    log: Log
    display: Display

    def __init__(self, experiment: Experiment, run: RunDirectory, interruption: Interruption):
        from accelerate import Accelerator  # type: ignore[import-untyped]

        self.experiment, self.directory, self.interruption = experiment, run, interruption
        self.settings = settings = experiment.config.train
        self.device = choose(settings.device)
        self.accelerator = Accelerator(device_placement=False, mixed_precision="no")
        model = experiment.model.to(self.device).train()
        loss = None if experiment.learning is None else experiment.learning.to(self.device).train()
        self.model, self.optimiser = self.accelerator.prepare(model, optimiser(model, settings, loss))
        average = None if settings.ema is None else Average(model, settings.ema)
        self.state = State(model, self.optimiser, average, Plateau(), loss=loss)
        self.saved = results.resume(run, self.state)
        self.speed, self.health = Speed(self.counters.seconds), Health(experiment, self.device)

    @property
    def counters(self) -> Any:
        """The numbers of the state."""
        return self.state.counters

    def run(self) -> dict[str, Any]:
        """Steps, evaluations and checkpoints until there is a reason to stop."""
        while True:
            reason = self.reason()
            try:
                if self.due(self.settings.evaluate_every, reason) and self.counters.evaluated != self.counters.step:
                    self.judge(self.evaluate())
                    reason = self.reason()
            except Interrupted:
                self.display.say("stopped during an evaluation, which will be made again")
            stopped = self.interruption.signal is not None
            if stopped or self.due(self.settings.checkpoint_every, reason):
                self.save()
            if stopped:
                raise self.interruption.exit()
            if reason:
                return self.finish(reason)
            with self.speed.timed():
                told = self.advance()
            self.tell(told)

    def due(self, every: int, reason: str | None) -> bool:
        """Whether the time has come for something done every so many steps and at the end."""
        return reason is not None or (every > 0 and self.counters.step > 0 and self.counters.step % every == 0)

    def reason(self) -> str | None:
        """Why the training is over, if it is."""
        if self.counters.step >= self.settings.max_steps:
            return f"all {self.settings.max_steps} steps are done"
        if self.settings.max_minutes is not None and self.speed.elapsed() >= 60 * self.settings.max_minutes:
            return f"the {self.settings.max_minutes:g} minutes are over"
        if self.settings.patience and self.counters.stale >= self.settings.patience:
            return f"{self.counters.stale} evaluations brought nothing better"
        return None

    def advance(self) -> dict[str, float]:
        """One update, unless its batch turns out to be bad; what is to be told of it."""
        counters, settings = self.counters, self.settings
        current = self.state.plateau.factor * rate(settings, counters.step, self.experiment.size)
        set_rate(self.optimiser, current)
        first = counters.step * settings.accumulate
        batches = [self.batches.batch(first + number) for number in range(settings.accumulate)]
        loss, counters.parts = gradient(batches, counters.parts, self.backward, self.begin)
        norm = clip(self.model.parameters(), loss.tokens, settings.clip)
        if self.state.loss is not None:  # cut apart, so that neither holds the other back; NaN where it is not finite
            norm = norm + 0 * clip(self.state.loss.parameters(), loss.tokens, settings.clip)
        value, tokens, length, parts = per_token(loss, norm)
        if math.isfinite(value) and length < LARGEST:
            self.optimiser.step()
            if self.state.average is not None:
                self.state.average.update(self.state.model, counters.step)
            self.experiment.updated(loss)
            self.speed.add(value, tokens, parts)
        else:
            self.skip(value, length)
        counters.step, counters.tokens = counters.step + 1, counters.tokens + tokens
        return {"rate": current, "gradient": length}

    def begin(self) -> None:
        """Before the first part of an update, and again when it has to be cut into smaller ones."""
        reseed(self.settings.seed, self.counters.step, self.device)
        self.optimiser.zero_grad()

    def backward(self, batch: Batch) -> Loss:
        """The loss of a part of an update, its gradients added to those of the parts before."""
        with self.autocast():
            progress = Progress(self.counters.step, self.settings.max_steps)
            loss = self.experiment.loss(self.model, batch.to(self.device), progress)
        self.accelerator.backward(loss.total)
        parts = {name: torch.as_tensor(value).detach() for name, value in loss.parts.items()}
        return Loss(loss.total.detach(), loss.tokens, parts)

    def autocast(self) -> torch.autocast:
        """Half precision where the config asks for it."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16")

    def skip(self, value: float, length: float) -> None:
        """Leave the weights alone, and give up when this happens too often."""
        self.counters.skipped += 1
        if self.counters.skipped >= max(1, self.settings.bad_batches):
            raise FailedError(
                f"{self.counters.skipped} batches had a loss or gradient that is not finite, the last at step "
                f"{self.counters.step} (loss {value:g} per token, gradient {length:g}). Lower train.rate or train.clip, "
                "look for bad records, or allow more with train.bad_batches; the last checkpoint is whole"
            )

    def tell(self, record: dict[str, float]) -> None:
        """Bring the display and, now and then, the log up to date."""
        step = self.counters.step
        self.display.advance(step)
        if self.settings.log_every and step % self.settings.log_every == 0:
            news = {"step": step, **self.speed.record(), **record, "skipped": self.counters.skipped}
            health = self.health.look(self.state.model, self.speed.elapsed())
            self.log.write(news | ({"attention": health} if health else {}))
            self.display.show(news, self.speed.left(step, self.settings.max_steps, self.settings.max_minutes))

    def evaluate(self) -> dict[str, float]:
        """The figures of the weights that would be published now: their moving average where there is one."""
        model, average = self.state.model.eval(), self.state.average
        reseed(self.settings.seed, self.counters.step, self.device)
        published = nullcontext() if average is None else average.inside(model)
        try:
            with published, torch.no_grad(), self.autocast(), self.interruption.at_once():
                return {name: float(value) for name, value in self.experiment.evaluate(model).items()}
        finally:
            model.train()

    def judge(self, figures: dict[str, float]) -> None:
        """Keep the model if it is the best so far."""
        value, counters = self.experiment.judged(figures), self.counters
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

    def save(self) -> None:
        """Write a checkpoint, unless this very state has been written."""
        self.counters.seconds = self.speed.elapsed()
        if self.saved != (self.counters.step, self.counters.evaluated):
            checkpoint.save(self.directory.checkpoints, self.counters.step, self.state.tensors(), self.state.table())
            keep = max(2, self.settings.keep, self.settings.average)
            checkpoint.prune(self.directory.checkpoints, keep, self.settings.checkpoint_every)
            self.saved = (self.counters.step, self.counters.evaluated)

    def finish(self, reason: str) -> dict[str, Any]:
        """Leave the final model in the directory, and in memory."""
        self.display.say(f"finished: {reason}")
        counters, folder = self.counters, self.directory.checkpoints
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
