"""The run directory: what a trained model is on disk.

    config.toml  model.safetensors  codec files  manifest.json      what `load` reads
    metrics.json  log.jsonl  checkpoints/                           what became of the training, and how to go on

Files at the top change together with their manifest. A file is good when its digest is the one in `files` or the one in
`pending`, which is what it is about to become, so that no instant of the change finds a directory that cannot be loaded.
"""

import os
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any

from regard import config as configuration
from regard.training import atomic, manifest
from regard.training.entries import check_entries
from regard.training.errors import DamagedError, DamagedWarning, RefusedError
from regard.training.experiment import Experiment
from regard.training.lock import Lock

CONFIG = "config.toml"
MODEL = "model.safetensors"
ENSEMBLE = "ensemble.json"
"""What a directory of several models has in place of the two."""
STEP = "step.onnx"
"""What a directory of exported graphs has in place of the weights."""
ARCHIVE = ".zip"
"""How the name ends of such a directory in one file."""
FREE = {
    "data.test",
    "train.max_steps",
    "train.max_minutes",
    "train.checkpoint_every",
    "train.device",
    "train.film",
    "train.film_every",
    "train.keep",
    "train.log_every",
    "train.patience",
    "train.tensorboard",
}
"""Settings that may differ when a training goes on: they decide when it ends and what is seen of it, not where it goes."""


class RunDirectory:
    """A directory for one training at a time, held by a lock while inside `with`."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.held = ExitStack()

    def __enter__(self) -> "RunDirectory":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            check_entries(self.path)
            self.held.enter_context(Lock(self.path))
        except OSError as error:
            self.held.close()
            raise self._unwritable(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.held.close()

    def claim(self, experiment: Experiment) -> None:
        """Make the directory this experiment's, or see that it already is."""
        if (self.path / ENSEMBLE).exists():
            raise RefusedError(f"{self.path} is an ensemble of trained models: train into another directory")
        if (self.path / STEP).exists():
            raise RefusedError(f"{self.path} is an exported model: train into another directory")
        there = (self.path / CONFIG).exists()
        if there and not (self.path / manifest.NAME).exists():
            raise RefusedError(f"{self.path} has a {CONFIG} and no {manifest.NAME}: it is no run; choose another directory")
        try:
            self.checkpoints.mkdir(exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        if there:
            atomic.sweep(self.path)  # what a kill left half-written; in a directory that is no run, nothing is ours
            atomic.sweep(self.checkpoints)
        there = there and (any(self.checkpoints.iterdir()) or (self.path / MODEL).exists())  # work that could be lost
        if there:
            same_config(self.path, experiment.config, experiment.task)
        files = {CONFIG: written(experiment), **codec_files(experiment, self.path)}
        known = self.manifest()["files"]
        for name, data in files.items():
            if there and name != CONFIG and known.get(name, manifest.digest(data)) != manifest.digest(data):
                raise RefusedError(
                    f"{self.path / name} was made from other data: what this run would put there differs; "
                    "give it the data it was started with, or choose another directory"
                )
        self.publish({name: data for name, data in files.items() if known.get(name) != manifest.digest(data)})

    def publish(self, files: Mapping[str, bytes]) -> None:
        """Put files in place, so that the directory is whole at every instant."""
        if not files:
            return
        table = self.manifest()
        digests = {name: manifest.digest(data) for name, data in files.items()}
        self._seal({**table, "pending": digests})
        for name, data in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            atomic.write(self.path / name, data)
        self._seal({**table, "files": {**table["files"], **digests}, "pending": {}})

    def put(self, files: Mapping[str, bytes]) -> None:
        """Leave files beside the run, each unless it is there: nobody reads them back, so the manifest has none of them."""
        for name, data in files.items():
            if not (self.path / name).exists():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                atomic.write(self.path / name, data)

    def manifest(self) -> dict[str, Any]:
        """What the directory says it holds, settled after a kill between two files of one change."""
        path = self.path / manifest.NAME
        empty: dict[str, Any] = {"files": {}, "pending": {}}
        if not path.exists():
            return empty
        try:
            table = files_in(manifest.unseal(path), path)
        except DamagedError as damage:
            warnings.warn(f"{damage}; it is made anew", DamagedWarning, stacklevel=2)
            return empty
        for name, expected in table["pending"].items():
            if _digest(self.path / name) == expected:
                table["files"][name] = expected
        return {name: held for name, held in table.items() if name not in ("format", "versions")} | {"pending": {}}

    def note(self, name: str, value: Any) -> None:
        """Write something beside the files into the manifest of a run; it stays there when files change."""
        manifest.unseal(self.path / manifest.NAME)  # one that is missing or damaged is no place to write to
        self._seal({**self.manifest(), name: value})

    def holds(self, name: str, expected: str | None = None) -> bool:
        """Whether a file is there and is what was written last, or what `expected` is the digest of."""
        expected = self.manifest()["files"].get(name) if expected is None else expected
        return expected is not None and _digest(self.path / name) == expected

    def _unwritable(self, error: OSError) -> RefusedError:
        return RefusedError(f"cannot write to {self.path}: {error.strerror}; choose a directory that can be written")

    def _seal(self, table: dict[str, Any]) -> None:
        atomic.write(self.path / manifest.NAME, manifest.seal(table))


def verify(path: Path) -> dict[str, bytes]:
    """The files of a run directory that `load` reads, by name, each checked against the manifest."""
    table = files_in(manifest.unseal(path / manifest.NAME), path)
    contents = {}
    for name in {**table["files"], **table["pending"]}:
        found = _digest(path / name)
        if found is not None and found == table["pending"].get(name):
            table["files"][name] = found
        contents[name] = manifest.verified(path / name, table["files"].get(name))
    return contents


def files_in(table: dict[str, Any], path: Path) -> dict[str, Any]:
    """The table of a manifest whose files are names inside the directory, each with a digest."""
    for kind in ("files", "pending"):
        held = table.get(kind)
        if not isinstance(held, dict) or not all(isinstance(each, str) for each in held.values()):
            raise DamagedError(f"{path}: its manifest has no table of {kind}")
        for name in held:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise DamagedError(f"{path}: its manifest names {name!r}, which lies outside")
    return table


def written(experiment: Experiment) -> bytes:
    """config.toml: the task's name, then the whole config."""
    text = configuration.write(experiment.config)
    if any(each.name == "task" for each in fields(experiment.config)):  # type: ignore[arg-type]
        return text.encode()
    return f'task = "{experiment.task}"\n{text}'.encode()


def codec_files(experiment: Experiment, path: Path) -> dict[str, bytes]:
    """What the codec would save, by name."""
    with atomic.room(path), tempfile.TemporaryDirectory(dir=path, prefix=atomic.TEMPORARY) as folder:
        experiment.codec.save(Path(folder))
        files = sorted(each for each in Path(folder).rglob("*") if each.is_file())
        return {str(each.relative_to(folder)): each.read_bytes() for each in files}


def same_config(path: Path, config: Any, task: str = "") -> None:
    """Refuse to go on with a run under another config, naming the first setting that differs."""
    try:
        before = flat(configuration.without_removed(configuration.parse(path / CONFIG)))
    except configuration.ConfigError as error:
        raise RefusedError(str(error)) from error
    started = before.pop("task", task)
    if task and started != task:
        raise RefusedError(f"{path} is a run of the task {started!r}, not of {task!r}: train into another directory")
    now, usual = flat(configuration.plain(config)), flat(configuration.plain(type(config)()))
    bound = {"train.max_steps": config.train.schedule == "cosine", "train.checkpoint_every": config.train.average > 0}
    free = FREE - {name for name, needed in bound.items() if needed}
    for name in sorted({*before, *now} - free):
        if name == "task":
            continue
        old, new = before.get(name, usual.get(name)), now.get(name)
        if old != new:
            raise RefusedError(
                f"{path} was started with {name} = {old!r}, and now it is {new!r}: "
                "give it the old value to go on, or train into another directory"
            )


def flat(table: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """{"a.b": 1} from {"a": {"b": 1}}; lists and tuples are one."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{path}{key}.")
        else:
            found[f"{path}{key}"] = list(value) if isinstance(value, tuple) else value
    return found


def _digest(path: Path) -> str | None:
    return manifest.digest(path.read_bytes()) if os.path.isfile(path) else None
