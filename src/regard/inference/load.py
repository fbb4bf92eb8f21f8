"""Open what was trained: a run directory, an ensemble of them, or graphs that were exported."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard import config as configuration
from regard.boundary import boundary
from regard.components import Handed, hand_over
from regard.errors import ConfigError, DamagedError, DataWarning, RefusedError
from regard.inference.alignment_head import load_head
from regard.inference.predictor import Predictor
from regard.inference.sequence_predictor import SequencePredictor
from regard.manifest import NAME as MANIFEST
from regard.training.device import select_device
from regard.training.run_directory import ARCHIVE, CONFIG, ENSEMBLE, MODEL, STEP
from regard.training.snapshot import Snapshot, read_snapshot, retry_on_publish
from regard.training.state_dict import restore
from regard.training.tensor_file import TensorFile


def load(directory: Path | str, device: str = "auto", *, components: Handed | Iterable[Handed] = ()) -> Predictor:
    """Open a trained model of any task: a run directory, an ensemble, or an exported model in one file.

    Every file is read once and checked against the manifest; none is run. `components` are the classes, Python files or
    installed names of a user's own that it was trained with (components.py).
    """
    path = Path(directory)
    with hand_over(components), boundary(path):
        if path.suffix == ARCHIVE and path.is_file():
            from regard.interop.onnx.archive import read_archive

            return assemble(read_archive(path), device)
        if not (path / MANIFEST).is_file():
            raise DamagedError(f"{path} is no trained model: it {_lacking(path)}")
        predictor = retry_on_publish(path, lambda sealed: assemble(read_directory(path, sealed), device))
    predictor.home = path
    return predictor


def load_sequence_predictor(directory: Path | str, device: str = "auto") -> SequencePredictor:
    """Open a model that decodes text step by step; one of another kind is refused."""
    predictor = load(directory, device)
    if not isinstance(predictor, SequencePredictor):
        raise RefusedError(
            f"{directory} is a run of {predictor.name}, which writes no text; predict, evaluate, view and compare are the "
            "commands for it"
        )
    return predictor


def assemble(snapshot: Snapshot, device: str = "auto", member: bool = False) -> Predictor:
    """The model in a snapshot: its config, its codec and its network. A `member` of an ensemble is no ensemble itself."""
    path, files = snapshot.path, snapshot.files
    if ENSEMBLE in files:
        if member:
            raise DamagedError(f"{path} is an ensemble inside an ensemble, which regard does not write")
        from regard.inference.ensemble.directory import open_ensemble

        return open_ensemble(snapshot, device)
    for needed in (CONFIG, STEP if STEP in files else MODEL):
        if needed not in snapshot.names:
            raise DamagedError(f"{path} has no {needed}: train into it first, or choose a directory that regard train made")
    from regard import tasks  # imported late: tasks build predictors
    from regard.tasks.kinds.types import family

    table = configuration.parse_text(files[CONFIG].decode(), path / CONFIG)
    name = str(table.pop("task", ""))
    try:
        config = configuration.check(tasks.find(name).Config, table)
    except ConfigError as error:
        raise ConfigError(f"{path / CONFIG}: {error}") from error
    config = ignore_outside_files(config, path)
    strange = [file.name for side in ("codec", "source", "target", "joint") for file in path.glob(f"{side}.*")]
    if unlisted := sorted(set(strange) - files.keys()):
        raise DamagedError(f"{path / unlisted[0]} is not in the manifest: it was put there by something else")
    kind = family(config)
    codec, head = kind.load_codec(snapshot.folder), load_head(snapshot.table, path)
    if STEP in files:
        from regard.interop.onnx.engine import Onnx
        from regard.interop.onnx.external import check_graph

        for graph in (file for file in files if file.endswith(".onnx")):
            check_graph(files[graph], str(path / graph))
        try:
            return Onnx(tasks.bind(name), config, codec, files, head)
        except DamagedError as error:
            raise DamagedError(f"{path}: {error}") from error
    with advised(path), TensorFile(path / MODEL, snapshot.digests(MODEL), path) as file:
        model = file.build(lambda: tasks.build(config, codec))
        tensors = file.read()
    restore(model, tensors, str(path / MODEL))
    return kind.build_predictor(tasks.bind(name), config, codec, model.to(select_device(device)), head)


def ignore_outside_files(config: Any, path: Path) -> Any:
    """Config without the files outside its directory that a search would open: only a command or a caller names those."""
    search = getattr(config, "search", None)
    named = {name: getattr(search, name, None) for name in ("lm", "grammar")}
    named = {name: value for name, value in named.items() if value not in (None, "targets")}
    if search is None or not named:
        return config
    name, value = next(iter(named.items()))
    warnings.warn(
        f"{path / CONFIG} has search.{name}={value!r}, a file outside of it, which is not opened; give --search.{name} to "
        "the command that searches",
        DataWarning,
        stacklevel=2,
    )
    return replace(config, search=replace(search, **dict.fromkeys(named)))


def read_directory(path: Path, sealed: bytes) -> Snapshot:
    """The files of a run directory but its weights, which `assemble` reads."""
    with advised(path):
        return read_snapshot(path, sealed, omit=(MODEL,))


@contextmanager
def advised(path: Path) -> Iterator[None]:
    """Say what to do about a damaged file."""
    try:
        yield
    except DamagedError as error:
        raise DamagedError(
            f"{error}: copy {path} again from where it is whole, or train, import or export it anew"
        ) from error


def _lacking(path: Path) -> str:
    """Description of a path that is no run directory, and what to do."""
    what = "has no manifest.json" if path.is_dir() else "is no directory"
    do = "give the directory that `regard train --out DIR` wrote"
    if (path / "config.json").is_file() and (path / MODEL).is_file():
        do = f"it looks like a model of transformers, of which `regard import {path} --out DIR` makes one"
    if (path / "export.json").is_file():
        do = "it is an export that runs without regard, by the code in its README.md; give the run that it was made from"
    return f"{what}; {do}"
