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
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any

from regard import config as configuration
from regard import io, manifest
from regard.errors import ConfigError, DamagedError, DamagedWarning, RefusedError, UnwritableError
from regard.regular_files import MEMORY, read_regular
from regard.training import lock
from regard.training.entries import check_entries
from regard.training.experiment import Experiment
from regard.training.lock import Lock
from regard.training.snapshot import files_in
from regard.training.snapshot import verify as verify

CONFIG = "config.toml"
MODEL = "model.safetensors"
ENSEMBLE = "ensemble.json"
"""Settings of an ensemble, in place of the config and the weights."""
STEP = "step.onnx"
"""Graph of a decoder step, in place of the weights, in an exported model."""
ARCHIVE = ".zip"
"""Suffix of an exported model in one file."""
PUBLISHED, PUBLISHING = "published", "publishing"
"""Entries of a manifest: the record of the model that the directory holds, and of one that is about to replace it."""
FREE = {
    "data.test",
    "train.max_epochs",
    "train.max_steps",
    "train.max_minutes",
    "train.checkpoint_every",
    "train.device",
    "train.record_example",
    "train.record_every",
    "train.keep_checkpoints",
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
        self.locks = ExitStack()
        self.entered = False
        """True if a training had entered the directory before, so that its half-written files may be swept."""
        self.identity: tuple[int, int] | None = None
        """Device and inode of the directory while its lock is held: a path may come to name another one."""
        self.table: dict[str, Any] | None = None
        """The manifest as it was last read or written while the lock is held."""

    def __enter__(self) -> "RunDirectory":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            check_entries(self.path)
            self.entered = (self.path / lock.NAME).exists()
            self.locks.enter_context(Lock(self.path))
            self.identity = _identity(self.path)
        except OSError as error:
            self.locks.close()
            raise self._unwritable(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.locks.close()
        identity, self.identity, self.table = self.identity, None, None
        if isinstance(error, OSError) and self.contains(error):
            if identity != _identity(self.path):
                raise self._gone() from error
            raise UnwritableError(
                f"cannot write to {error.filename or self.path}: {error.strerror}. What was saved before is whole; make "
                f"{self.path} writable and start again to go on from there, or choose another directory"
            ) from error

    def claim(self, experiment: Experiment) -> None:
        """Make the directory this experiment's, or see that it already is."""
        existing = is_run(self.path)
        try:
            self.checkpoints.mkdir(exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        if existing or self.entered:
            io.sweep(self.path)  # what a kill left half-written; in a directory that is no run, nothing is ours
            for folder in self.path.iterdir():  # checkpoints, and samples of the task
                if folder.is_dir() and not folder.is_symlink():
                    io.sweep(folder)
        existing = existing and has_work(self.path)
        if existing:
            self.manifest()  # of another format, its settings have other names
            check_same_config(self.path, experiment.config, experiment.task)
        files = {CONFIG: render_config(experiment), **codec_files(experiment, self.path)}
        self.check()
        known = self.manifest()["files"]
        for name, data in files.items():
            if existing and name != CONFIG and known.get(name, manifest.digest(data)) != manifest.digest(data):
                raise RefusedError(
                    f"{self.path / name} was made from other data: what this run would put there differs; "
                    "give it the data it was started with, or choose another directory"
                )
        self.publish({name: data for name, data in files.items() if known.get(name) != manifest.digest(data)})

    def publish(self, files: Mapping[str, bytes], record: Mapping[str, Any] | None = None) -> None:
        """Put files in place, so that the directory is whole at every instant.

        `record` describes the model among them and changes with it: a reader finds old model and old record, or both new.
        """
        if not files:
            return
        self.check()
        table = self.manifest()
        digests = {name: manifest.digest(data) for name, data in files.items()}
        self._seal({**table, "pending": digests} | ({} if record is None else {PUBLISHING: dict(record)}))
        for name, data in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            io.write(self.path / name, data)
        published = {} if record is None else {PUBLISHED: dict(record)}
        self._seal({**table, "files": {**table["files"], **digests}, "pending": {}, **published})

    def check(self) -> None:
        """Raise where the path no longer names the directory that was entered; write its manifest again where it is gone.

        To be called before every write: a directory that was deleted or renamed must not be begun anew with half a run.
        """
        if self.identity is not None and self.identity != _identity(self.path):
            raise self._gone()
        if self.table is not None and not (self.path / manifest.NAME).exists():
            self.manifest()

    def write_extra_files(self, files: Mapping[str, bytes]) -> None:
        """Write each of these files unless it exists; nothing reads them back, so they are not in the manifest."""
        for name, data in files.items():
            if not (self.path / name).exists():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                io.write(self.path / name, data)

    def manifest(self) -> dict[str, Any]:
        """The manifest, settled after a kill between two files of one change."""
        path = self.path / manifest.NAME
        empty: dict[str, Any] = {"files": {}, "pending": {}}
        if self.table is None and not path.exists():
            return empty
        try:
            table = files_in(manifest.unseal(path), path)
        except DamagedError as damage:
            if self.table is None:
                warnings.warn(f"{damage}; it is made anew", DamagedWarning, stacklevel=2)
                return empty
            text = f"{damage}, changed by somebody else while the run goes on; it is written again with all that it held"
            warnings.warn(text, DamagedWarning, stacklevel=2)
            self._seal(self.table)
            return {**self.table}
        for name, expected in table["pending"].items():
            if _digest(self.path / name) == expected:
                table["files"][name] = expected
        record = table.pop(PUBLISHING, None)
        if isinstance(record, dict) and record.get("sha256") == table["files"].get(MODEL):
            table[PUBLISHED] = record
        cut_short = bool(table["pending"])
        table = {name: value for name, value in table.items() if name not in ("format", "versions")} | {"pending": {}}
        if self.identity is not None:
            self.table = table
            if cut_short:  # it may be the last change, and others read the manifest too
                self._seal(table)
        return {**table}

    def note(self, name: str, value: Any) -> None:
        """Write something beside the files into the manifest of a run; it stays there when files change."""
        manifest.unseal(self.path / manifest.NAME)  # one that is missing or damaged is no place to write to
        io.sweep(self.path, io.RANDOM)  # what an earlier note left that was killed
        self._seal({**self.manifest(), name: value})

    def holds(self, name: str, expected: str | None = None) -> bool:
        """Return True if a file exists with the digest of the manifest, or with the `expected` one."""
        expected = self.manifest()["files"].get(name) if expected is None else expected
        return expected is not None and _digest(self.path / name) == expected

    def contains(self, error: OSError) -> bool:
        """Return True if an error is about writing here: to a path inside, or to a full disk."""
        if error.filename is None or isinstance(error.filename, int):
            return error.errno in io.FULL
        return Path(os.path.abspath(os.fsdecode(error.filename))).is_relative_to(os.path.abspath(self.path))

    def _gone(self) -> UnwritableError:
        return UnwritableError(
            f"{self.path} was deleted or renamed while it was written to, and nothing more is written. What was saved "
            "before is whole wherever the directory is now: move it back, or give its new name, and start again to go on"
        )

    def _unwritable(self, error: OSError) -> RefusedError:
        return RefusedError(f"cannot write to {self.path}: {error.strerror}; choose a directory that can be written")

    def _seal(self, table: dict[str, Any]) -> None:
        io.write(self.path / manifest.NAME, manifest.seal(table))
        if self.identity is not None and not table["pending"]:
            self.table = table


def check_resumable(path: Path, config: Any, task: str) -> None:
    """Raise where a config cannot be trained into a directory, by what is in it; `claim` does so under the lock."""
    if path.exists() and not path.is_dir():
        raise RefusedError(f"{path} is a file, and a run needs a directory: name another one, or move the file away")
    if path.is_dir():
        check_entries(path)
    if is_run(path) and has_work(path):
        check_format(path)
        check_same_config(path, config, task)
    check_unused(path)


def check_unused(path: Path) -> None:
    """Raise for a directory that is no run and holds other things; hidden files do not count."""
    if not path.is_dir() or (path / CONFIG).exists() or (path / lock.NAME).exists() or is_run(path):
        return
    names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
    if names:
        more = f" and {len(names) - 1:,} more" * (len(names) > 1)
        raise RefusedError(f"{path} is no run, and has other things in it ({names[0]}{more}): train into a new directory")


def is_run(path: Path) -> bool:
    """True if a directory is that of a run; raises where it is something else that regard wrote."""
    if (path / ENSEMBLE).exists():
        raise RefusedError(f"{path} is an ensemble of trained models: train into another directory")
    if (path / STEP).exists():
        raise RefusedError(f"{path} is an exported model: train into another directory")
    has_config = (path / CONFIG).exists()
    if has_config and not (path / manifest.NAME).exists():
        raise RefusedError(f"{path} has a {CONFIG} and no {manifest.NAME}: it is no run; choose another directory")
    return has_config


def has_work(path: Path) -> bool:
    """True if a run directory has a checkpoint or a model, which could be lost."""
    folder = path / "checkpoints"
    return (path / MODEL).exists() or (folder.is_dir() and any(folder.iterdir()))


def check_format(path: Path) -> None:
    """Raise where a run has another format, whose settings have other names; a damaged manifest is replaced later.

    A link or a device among its files is refused before any of them is opened.
    """
    check_entries(path)
    with suppress(DamagedError):
        manifest.unseal(path / manifest.NAME)


def render_config(experiment: Experiment) -> bytes:
    """config.toml: the task's name, then the whole config."""
    text = configuration.write(experiment.config)
    if any(field.name == "task" for field in fields(experiment.config)):  # type: ignore[arg-type]
        return text.encode()
    return f'task = "{experiment.task}"\n{text}'.encode()


def codec_files(experiment: Experiment, path: Path) -> dict[str, bytes]:
    """Files of the codec by name, with their content."""
    with io.room(path), tempfile.TemporaryDirectory(dir=path, prefix=io.TEMPORARY) as folder:
        experiment.codec.save(Path(folder))
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def check_same_config(path: Path, config: Any, task: str = "") -> None:
    """Refuse to go on with a run under another config, naming the first setting that differs."""
    try:
        before = flatten(configuration.parse(path / CONFIG))
    except ConfigError as error:
        raise RefusedError(str(error)) from error
    started = before.pop("task", task)
    if task and started != task:
        raise RefusedError(f"{path} is a run of the task {started!r}, not of {task!r}: train into another directory")
    now, usual = flatten(configuration.plain(config)), flatten(configuration.plain(type(config)()))
    bound = {
        "train.max_epochs": config.train.schedule == "cosine",
        "train.max_steps": config.train.schedule == "cosine",
        "train.checkpoint_every": config.train.average_checkpoints > 0,
    }
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


def flatten(table: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """{"a.b": 1} from {"a": {"b": 1}}; lists and tuples are one."""
    flattened: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flattened |= flatten(value, f"{path}{key}.")
        else:
            flattened[f"{path}{key}"] = list(value) if isinstance(value, tuple) else value
    return flattened


def _digest(path: Path) -> str | None:
    return manifest.digest(read_regular(path, MEMORY)) if os.path.isfile(path) else None


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a directory; None where there is none."""
    try:
        known = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return known.st_dev, known.st_ino
