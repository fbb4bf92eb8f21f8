"""The training loop: one for every task.

Whatever happens, a run that is started again goes on from its newest whole checkpoint and arrives at the same weights, bit
for bit (on one machine, with one version of torch and one number of threads), as if nothing had happened: batches and
dropout are pure functions of (seed, step), and everything else that changes is in the checkpoint.
"""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from regard.data.prefetch import PrefetchedBatches
from regard.errors import FailedError, Interrupted, TrainingError
from regard.training.attention_metrics import AttentionMetrics
from regard.training.callbacks import Callback
from regard.training.evaluator import Evaluator
from regard.training.experiment import Experiment
from regard.training.gradient import describe_remedy, out_of_memory
from regard.training.log import Log
from regard.training.output_stream import guarded
from regard.training.progress import Display, open_display
from regard.training.run_directory import RunDirectory
from regard.training.seed import deterministic
from regard.training.signals import Interruption
from regard.training.step import Update
from regard.training.throughput import Throughput


def train(experiment: Experiment, directory: Path | str, *, quiet: bool = False) -> dict[str, Any]:
    """Train into a directory, from the beginning or from where an earlier run got to; returns what metrics.json says.

    Afterwards the experiment's model is the one that the directory holds.
    """
    settings = experiment.settings
    with ExitStack() as stack:
        interruption = stack.enter_context(Interruption())  # a signal from here on waits until there is something to save
        stack.enter_context(guarded(interruption.lose_reader))
        run = stack.enter_context(RunDirectory(Path(directory)))
        run.claim(experiment)
        run.write_extra_files(experiment.extra_files)
        loop = Loop(experiment, run, interruption)
        loop.batches = stack.enter_context(PrefetchedBatches(experiment.train, loop.update.ready))
        step, lines = loop.counters.step, loop.counters.log_lines
        log = Log(run.path, step, settings.tensorboard, lines=lines, check=run.check)
        loop.log = loop.evaluator.log = stack.enter_context(log)
        loop.display = loop.evaluator.display = stack.enter_context(open_display(settings.max_steps, quiet))
        stack.enter_context(deterministic(settings.deterministic))
        if step:
            loop.display.say(f"resuming {run.path} at step {step}")
        if experiment.data_report and loop.counters.step == log.lines == 0:
            log.write({"step": 0, "data": dict(experiment.data_report)})
        if loop.update.device.type == "cuda" and loop.update.eager is not None and settings.cuda_graphs:
            loop.display.say(f"updates are launched kernel by kernel and not replayed as CUDA graphs: {loop.update.eager}")
        try:
            return loop.run()
        except (RuntimeError, MemoryError) as error:
            if out_of_memory(error) and not isinstance(error, TrainingError):
                raise FailedError(describe_remedy(error, f"at step {loop.counters.step}")) from error
            raise


class Loop:
    """A training under way: updates, evaluations and checkpoints, each when it is due."""

    batches: PrefetchedBatches
    log: Log
    display: Display

    def __init__(self, experiment: Experiment, run: RunDirectory, interruption: Interruption):
        self.settings, self.interruption = experiment.settings, interruption
        self.update = Update(experiment)
        self.evaluator = Evaluator(self.update, run, interruption)
        self.counters = self.update.state.counters
        self.speed = Throughput(self.counters.seconds, self.counters.stretch)
        self.attention_metrics = AttentionMetrics(experiment, self.update.device)
        callbacks = (make(experiment, run.path, self.counters.step) for make in experiment.callbacks)
        self.callbacks: list[Callback] = [callback for callback in callbacks if callback is not None]

    def run(self) -> dict[str, Any]:
        """Steps, evaluations and checkpoints until there is a reason to stop."""
        while True:
            reason = self.reason()
            for callback in self.callbacks:
                if callback.due(self.counters.step, last=reason is not None):
                    self.settle()
                    self.evaluator.directory.check()
                    callback(self.counters.step, self.speed.last, last=reason is not None)
            try:
                if self.due(self.settings.evaluate_every, reason) and self.counters.evaluated != self.counters.step:
                    self.settle()
                    self.evaluator.record(self.evaluator.evaluate())
                    reason = self.reason()
            except Interrupted:
                self.display.say("stopped during an evaluation, which will be made again")
            stopped = self.interruption.signal is not None
            if stopped or self.due(self.settings.checkpoint_every, reason):
                self.save()
            if stopped:
                raise self.stop()
            if reason:
                return self.finish(reason)
            with self.speed.timed():
                first, count = self.counters.step * self.settings.accumulate_steps, self.settings.accumulate_steps
                with self.speed.waiting():
                    batches = [self.batches.batch(first + number) for number in range(count)]
                self.update(batches, self.speed)
            self.tell()

    def save(self) -> None:
        """Write a checkpoint of the state after all updates so far."""
        self.settle()
        self.counters.log_lines, self.counters.stretch = self.log.lines, self.speed.state()
        self.evaluator.save(self.speed.elapsed())

    def stop(self) -> Interrupted:
        """Say in the log, and to whoever still reads, that the training was stopped and saved; the exit to raise.

        The line comes after the checkpoint, so that a resumed training takes it back.
        """
        step, interrupted = self.counters.step, self.interruption.exit()
        self.log.write({"step": step, "stopped": signal.Signals(int(str(interrupted.code)) - 128).name})
        self.display.say(f"stopped at step {step}, which is kept; the same command goes on from there")
        return interrupted

    def finish(self, reason: str) -> dict[str, Any]:
        """Leave the final model in the directory. What is done here after the last checkpoint is done again when stopped."""
        try:
            return self.evaluator.finish(reason)
        except Interrupted:
            raise self.stop() from None

    def settle(self) -> None:
        """Wait for the updates that are under way, whose time counts."""
        with self.speed.timed():
            self.update.settle(self.speed)

    def due(self, every: int, reason: str | None) -> bool:
        """Return True at every so many steps, and at the end."""
        return reason is not None or (every > 0 and self.counters.step > 0 and self.counters.step % every == 0)

    def reason(self) -> str | None:
        """Reason why the training is over; None while it goes on."""
        if self.counters.step >= self.settings.max_steps:
            epochs, steps = self.settings.max_epochs, f"{self.settings.max_steps} steps"
            beyond = self.counters.step - self.settings.max_steps
            ended = f"all {steps} are done" if epochs is None else f"all {epochs:g} epochs are done, which are {steps}"
            return ended + f", and {beyond} more" * (beyond > 0)
        if self.settings.max_minutes is not None and self.speed.elapsed() >= 60 * self.settings.max_minutes:
            return f"the {self.settings.max_minutes:g} minutes are over"
        if self.settings.patience and self.counters.stale >= self.settings.patience:
            return f"{self.counters.stale} evaluations brought nothing better"
        return None

    def tell(self) -> None:
        """Bring the display and, now and then, the log up to date."""
        step = self.counters.step
        self.display.advance(step)
        if self.settings.log_every and step % self.settings.log_every == 0:
            self.settle()
            news = {"step": step, **self.speed.record(), **self.update.last, "skipped": self.counters.skipped}
            attention = self.attention_metrics.measure(self.update.state.model, self.speed.elapsed())
            self.log.write(news | ({"attention": attention} if attention else {}))
            self.display.show(news, self.speed.estimate_remaining(step, self.settings.max_steps, self.settings.max_minutes))
