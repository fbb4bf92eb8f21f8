"""Training from Python: `regard.train`, with the defaults, the checks and the run directory of the command.

Torch is imported once the names in a call are known to be right, so that a mistake is answered at once.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import config as configuration
from regard import registry
from regard.components import HANDED, Handed, Source, hand_over, hand_over_named
from regard.config.section import Section, check_kind, named_settings
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.data.codec import DataReport
    from regard.inference.predictor import Predictor
    from regard.tasks import TaskConfig
    from regard.training.experiment import Experiment

PathLike = str | os.PathLike[str]
Settings = Mapping[str, Any] | Section
"""Settings of a section: a table, or the section itself. What neither names keeps the task's default."""


@dataclass(frozen=True)
class TrainedRun:
    """A run directory after its training, with the metrics of the model in it."""

    directory: Path
    metrics: dict[str, Any]
    """Content of metrics.json: `valid` has the metrics of the published model, `step` its step, `ended` the reason."""

    components: tuple[Source, ...] = field(default=(), repr=False)
    """Components of the user's own that the training named; `load` hands them over again."""

    def load(self, device: str = "auto") -> "Predictor":
        """Open the trained model."""
        from regard.inference.load import load

        return load(self.directory, device, components=self.components)


def train(
    task: str | None = None,
    *,
    out: PathLike,
    config: "PathLike | Mapping[str, Any] | TaskConfig | None" = None,
    data: Settings | None = None,
    model: Settings | None = None,
    dropout: Settings | None = None,
    train: Settings | None = None,
    search: Settings | None = None,
    components: Handed | Iterable[Handed] = (),
    quiet: bool = False,
    **misplaced: Any,
) -> TrainedRun:
    """Train a model of a task into the directory `out`, or resume the run that is there; as `regard train`.

        run = regard.train("translate", data={"train": "train.tsv"}, model={"attention": "additive"}, out="run/")
        print(run.metrics["valid"])
        model = run.load()

    Sections are tables or the dataclasses of `regard.config`; settings that they do not name keep the value of `config` (a
    TOML file, a table of sections or the task's `Config`), else the task's default. Without a task the run in `out` is
    resumed with its own settings. A component of one's own is named by its file, model={"attention": "my_scores.py:L1"}; one
    that `config` or the run names is handed over by `components` (a class or a file). All settings are checked before data
    is read: an argument that is no section, as in learning_rate=0.01, is refused with the section that has it. Progress is
    written to standard error.
    """
    sections = {"data": data, "model": model, "dropout": dropout, "train": train, "search": search}
    table = {name: named_settings(section, name) for name, section in sections.items() if section is not None} | misplaced
    directory = Path(out)
    with hand_over(components):
        hand_over_named(_flatten(table))
        if task is not None:
            settings = read_config(task, *([] if config is None else [config]), table)
        elif config is None:
            task, settings = read_run_config(directory, table)
        else:
            raise ConfigError('a config needs its task: regard.train("translate", config=..., out=...)')
        for name, section in sections.items():
            if isinstance(section, Section):
                check_kind(section, getattr(settings, name), name)
        return TrainedRun(directory, train_config(task, settings, directory, quiet=quiet), HANDED.get())


def _flatten(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Settings of a table by their dotted paths."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _split(overrides: Sequence[str]) -> list[tuple[str, str]]:
    """Path and value of each override."""
    return [(path, value) for path, _, value in (override.partition("=") for override in overrides)]


def read_config(
    task: str, *sources: "PathLike | Mapping[str, Any] | TaskConfig", overrides: Sequence[str] = ()
) -> "TaskConfig":
    """The config of a task from TOML files, tables and dotted overrides over the task's defaults, later ones winning.

    A component of the user's own that an override names is handed over by that; one that a file or a table names is not.
    """
    registry.locate(task, "tasks")
    hand_over_named(_split(overrides))
    from regard import tasks

    kind = tasks.find(task).Config
    return configuration.read(kind, *(_read_table(task, kind, source) for source in sources), overrides=overrides)


def read_run_config(directory: Path, *tables: Mapping[str, Any], overrides: Sequence[str] = ()) -> "tuple[str, TaskConfig]":
    """The task and the config of a run directory, with changes laid over it."""
    from regard import tasks
    from regard.training.run_directory import CONFIG, check_format

    path = directory / CONFIG
    hand_over_named(_split(overrides))
    if not path.is_file():
        raise ConfigError(
            f"{directory} has no {CONFIG}, so there is no run to resume: name the task to begin one, as in regard train "
            f"translate --out {directory}"
        )
    check_format(directory)  # and that no file of it leads elsewhere, before one is read
    table = configuration.parse(path)
    task = str(table.pop("task", ""))
    registry.locate(task, "tasks")
    kind = tasks.find(task).Config
    try:
        started = configuration.check(kind, table)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return task, configuration.read(kind, asdict(started), *tables, overrides=overrides)


def train_config(task: str, config: "TaskConfig", directory: Path, *, quiet: bool = False) -> dict[str, Any]:
    """Check a config, read its data and train into a directory; returns the content of metrics.json."""
    from regard.training import loop
    from regard.training.run_directory import check_resumable

    check_configs(task, [config])
    check_resumable(directory, config, task)
    experiment, report = build_experiment(task, config, directory)
    notes = ([] if quiet else [f"{task}: {report}"]) + ([] if report.held_out is None else [str(report.held_out)])
    for note in notes if sys.stderr is not None else []:  # Python has no standard error where it was closed at the start
        print(note, file=sys.stderr)
    return loop.train(experiment, directory, quiet=quiet)


def check_configs(task: str, configs: "Sequence[TaskConfig]") -> None:
    """Raise for settings that have no effect or contradict each other, and for models that cannot be built."""
    from regard import tasks
    from regard.tasks._validate import buildable, heeded, searchable, trainable

    heeded(configs, tasks.find(task).Config())
    for config in configs:
        trainable(config)
        searchable(config)
        buildable(config)


def build_experiment(task: str, config: "TaskConfig", out: Path | None = None) -> "tuple[Experiment, DataReport]":
    """The experiment of a config; parts of it that do not fit each other are a ConfigError."""
    from regard import tasks

    try:
        return tasks.experiment(task, config, out)
    except (ConfigError, DataError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _read_table(task: str, kind: type[Any], source: Any) -> dict[str, Any]:
    """The settings of one source. A TOML file may name its task, which then must be this one."""
    if isinstance(source, kind):
        return asdict(source)
    if isinstance(source, Mapping):
        return dict(source)
    if not isinstance(source, str | os.PathLike):
        raise ConfigError(
            f"config needs to be a TOML file, a table or a Config of the task {task!r}, got {type(source).__name__}"
        )
    table = configuration.parse(Path(source))
    named = table.pop("task", task)
    if named != task:
        raise ConfigError(f"{Path(source)} is for the task {configuration.quoted(named)}, not for {task!r}")
    return table
