"""Run of a comparison: finished trainings are reused, the rest is trained, and the reports are written."""

import json
from collections.abc import Sequence
from pathlib import Path

from regard import components, io
from regard import config as configuration
from regard.compare.figures import load_figures
from regard.compare.outcome import Comparison, Outcome
from regard.compare.page import html
from regard.compare.plan import Planned
from regard.compare.progress import create_display
from regard.compare.spread import format_number
from regard.compare.table import label, tabulate
from regard.compare.workers import Job, run_jobs
from regard.errors import RefusedError, UnwritableError
from regard.training.progress import format_time


class Sweep:
    """All trainings of a comparison, in a directory with a folder for each."""

    def __init__(
        self,
        task: str,
        settings: tuple[str, ...],
        planned: Sequence[Planned],
        out: Path,
        *,
        seeds: int,
        jobs: int = 1,
        beam: int | None = None,
    ):
        self.task, self.settings, self.out = task, settings, out
        self.seeds, self.jobs, self.beam = seeds, jobs, beam
        self.planned = {run.folder: run for run in planned}
        self.outcomes = {run.folder: self.load_outcome(run) for run in planned}

    def run(self, quiet: bool) -> str:
        """Train what is not trained yet, and return the table. A signal stops it; the next start resumes."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            io.sweep(self.out, io.RANDOM)
        except OSError as error:
            text = f"cannot write to {self.out}: {error.strerror}; choose a directory that can be written"
            raise RefusedError(text) from error
        todo = [self.job(self.planned[outcome.folder]) for outcome in self.outcomes.values() if outcome.state == "waiting"]
        self.write()
        display = create_display(len(todo), quiet)

        def on_end(job: Job, reason: str | None) -> None:
            folder = Path(job.request["directory"]).name
            outcome = self.load_outcome(self.planned[folder], reason)
            changed = "its data or its model changed while it was measured; start again"
            self.outcomes[folder] = (
                outcome._replace(state="failed", reason=changed) if outcome.state == "waiting" else outcome
            )
            display.end(job.name, self.summarise(self.outcomes[folder]))
            self.write()

        try:
            run_jobs(todo, self.jobs, display, on_end)
        finally:
            display.close()
        return tabulate(self.comparison())

    def load_outcome(self, planned: Planned, reason: str | None = None) -> Outcome:
        """Outcome of a training: its metrics, or the reason why there are none."""
        about = planned.values, planned.seed, planned.folder
        if planned.refused is not None:
            return Outcome(*about, "impossible", planned.refused)
        if reason is not None:
            return Outcome(*about, "failed", reason)
        figures = load_figures(self.out / planned.folder, planned.config, self.beam)
        return Outcome(*about, "waiting") if figures is None else Outcome(*about, "done", None, figures)

    def job(self, planned: Planned) -> Job:
        """The request of a training to its worker."""
        request = {
            "task": self.task,
            "config": configuration.plain(planned.config),
            "components": components.list_handed(),
            "directory": str(self.out / planned.folder),
            "beam": self.beam,
        }
        return Job(str(planned), request)

    def summarise(self, outcome: Outcome) -> str:
        """One line about a finished training."""
        columns = self.comparison().columns()
        if outcome.state != "done":
            return f"failed: {outcome.reason}"
        first = [column for column in columns if not column.cost][:1]
        figures = [
            f"{label(column, columns)} {format_number(value)}"
            for column in first
            if (value := column.of(outcome)) is not None
        ]
        return ", ".join([*figures, f"{format_time(outcome.figures['seconds'])} of training"])

    def comparison(self) -> Comparison:
        """The comparison so far."""
        return Comparison(self.task, self.settings, self.seeds, list(self.outcomes.values()), self.jobs, self.beam)

    def failed(self) -> list[Outcome]:
        """The failed trainings."""
        return [outcome for outcome in self.outcomes.values() if outcome.state == "failed"]

    def write(self) -> None:
        """Write compare.md, compare.json and compare.html, each atomically."""
        comparison = self.comparison()
        plain = json.dumps(comparison.plain(), indent=1, ensure_ascii=False, allow_nan=False)
        for name, text in {"md": tabulate(comparison), "json": plain, "html": html(comparison)}.items():
            try:
                io.write(self.out / f"compare.{name}", text.encode("utf-8", "backslashreplace") + b"\n")
            except OSError as error:
                raise UnwritableError(
                    f"cannot write {self.out / f'compare.{name}'}: {error.strerror}. The trainings that ended are whole; "
                    f"make {self.out} a directory that can be written and start again, and they are not trained again"
                ) from error
