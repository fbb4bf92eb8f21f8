"""A film: where a model looks in one sentence, again and again while it is trained.

The target is always the same and is shown to the model word by word, so that every frame has the same rows. A film changes
no weight: it is taken in evaluation mode, without gradients, and no generator notices.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.table import Record
from regard.errors import ConfigError, DamagedWarning, RefusedError

if TYPE_CHECKING:
    from regard.data.modality import SequenceExample
    from regard.training.experiment import Experiment

FILM = "film.attn.safetensors"
Prepare = Callable[[Any], Any]
"""The function of a task that brings a record into the form in which its model reads it."""


def film(experiment: "Experiment", directory: Path, step: int, *, prepare: Prepare) -> "Film | None":
    """The callback that a config asks for with train.record_example, resumed at `step`; None where it asks for none."""
    sentence = experiment.config.train.record_example
    if sentence is None:
        return None
    return Film(experiment, encoded(experiment, sentence, prepare), directory / FILM, step)


def encoded(experiment: "Experiment", sentence: str, prepare: Prepare) -> "SequenceExample":
    """The probe sentence with its target: what stands behind a tab, or else what the data have for that source."""
    codec: Any = experiment.codec
    if getattr(codec, "kind", None) != "text":
        raise ConfigError(
            "train.record_example needs a task that reads text, whose codec makes tokens of a sentence; leave it out"
        )
    source, tab, target = sentence.partition("\t")
    if not source.strip() or (tab and not target.strip()):
        raise ConfigError(f"train.record_example needs a sentence, or two with a tab between them, got {sentence!r}")
    prepared = prepare(Record(source, target if tab else None, "train.record_example"))
    if not tab:
        every = [*(experiment.valid or ()), *getattr(experiment.train, "examples", ())]
        known = next((example.record.target for example in every if example.record.source == prepared.source), None)
        if known is None:
            raise ConfigError(
                f"train.record_example has the source {source!r}, which is not in the data, so its target is not known; "
                "give both with a tab between them, or a source of data.valid or data.train"
            )
        prepared = prepared._replace(target=known)
    example: SequenceExample = codec.encode(prepared)
    return example


class Film:
    """Takes a frame when its time has come, and keeps the file up to date."""

    def __init__(self, experiment: "Experiment", probe: "SequenceExample", path: Path, step: int):
        from regard.viewer.record import record
        from regard.viewer.record.spelling import Words

        self.experiment, self.probe, self.path = experiment, probe, path
        self.words = Words(experiment.codec)
        self.every: int = experiment.config.train.record_every
        self.recorder = record(experiment.model, name=experiment.task)
        self.recorder.frames = [frame for frame in self.before() if frame.step <= step]
        self.taken = self.recorder.every(self.every, self.run)

    def before(self) -> list[Any]:
        """The frames of an earlier start; a file that cannot be read is made anew, one of another sentence is left alone."""
        if not self.path.exists():
            return []
        from regard.viewer.io import load
        from regard.viewer.io.check import TraceError

        try:
            recorded = load(self.path)
        except (TraceError, OSError) as damage:
            warnings.warn(f"{damage}; the film begins anew", DamagedWarning, stacklevel=2)
            return []
        there = [
            recorded.examples[0].axes[name].labels for name in ("source", "target") if name in recorded.examples[0].axes
        ]
        if there != [self.words.read(self.probe).labels, self.words.answered(self.probe.target or []).labels]:
            raise RefusedError(
                f"{self.path} is the film of {recorded.examples[0].title!r}, and train.record_example is now "
                f"{self.probe.record.source!r}: move the file away to begin another, or give the old sentence to go on"
            )
        return list(recorded.training)

    def __call__(self, step: int, loss: float | None, *, last: bool = False) -> None:
        """See the model after so many steps, if a frame is due."""
        if not self.due(step, last=last):
            return
        with self.recorder:
            self.taken.shoot(step, loss)
        self.save()

    def due(self, step: int, *, last: bool = False) -> bool:
        """True if a frame is due after so many steps; at the `last` step one is in any case, unless it exists."""
        there = any(frame.step == step for frame in self.recorder.frames)
        return not there and (last or step % self.interval(step) == 0)

    def interval(self, step: int) -> int:
        """Number of steps between two frames now."""
        from regard.viewer.record.probe import interval

        return interval(step, self.every)

    def run(self) -> None:
        """Show the model the sentence and its target."""
        import torch

        from regard.data.batch import pad, shifted

        device = next(self.recorder.model.parameters()).device
        target = torch.tensor([self.probe.target], device=device)
        self.recorder.model(pad([self.probe.source]).to(device), shifted(target))

    def save(self) -> None:
        """Put the film so far in the place of the file."""
        from regard.viewer.io import save
        from regard.viewer.record.predicted import described
        from regard.viewer.trace import Trace

        example = described(self.recorder, self.words, self.probe)
        frames = tuple(self.recorder.frames)
        note = f"A film of {len(frames)} frames, {self.interval(frames[-1].step)} steps apart."
        graph = self.recorder.graph()
        save(Trace(self.experiment.task, (example,), graph, frames, (note,)), self.path)
