"""An ensemble on disk: a directory that holds its members, whole, and opens like any other run.

ensemble.json          how they are averaged, and the weight of each
members/0, 1, ...      what `load` reads of each run, with a manifest of its own
manifest.json          the SHA-256 of ensemble.json and of each member's manifest, which has those of its files
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard import io, manifest
from regard.alignment.heads import Head
from regard.errors import DamagedError, RefusedError, UnwritableError
from regard.inference.alignment_head import load_head
from regard.inference.ensemble.average import AVERAGES
from regard.inference.ensemble.build import ensemble
from regard.inference.load import assemble, read_directory
from regard.inference.sequence_predictor import SequencePredictor
from regard.training.run_directory import ENSEMBLE
from regard.training.snapshot import Snapshot, read_snapshot, retry_on_publish

FORMAT = 1
MEMBERS = "members"
LARGEST = 100
"""The most members."""
MOST = 1e300
"""The most that a weight may be: larger whole numbers have no float."""


class Settings(NamedTuple):
    """Average of the members, and the weight of each, in their order."""

    average: str
    weights: tuple[float, ...]


def write(path: Path, runs: Sequence[Path], settings: Settings) -> None:
    """Put copies of run directories and how they are averaged into a new directory, all at once or not at all."""
    check_free(path)
    temporary = io.temporary_name(path.parent)
    try:
        with io.room(path, None, temporary):
            fill(temporary, runs, settings)
            io.take_place(temporary, path)
            io.flush(path.parent)
    except UnwritableError as error:  # about a file inside, under a name that nobody has given
        raise UnwritableError(str(error).replace(str(temporary), str(path))) from error


def check_free(path: Path) -> None:
    """Refuse a directory that is taken or cannot be written, before anything is computed."""
    with io.room(path):
        if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
            raise RefusedError(f"{path} is there already; choose another directory, or remove it first")
    io.check_place(path)


def fill(folder: Path, runs: Sequence[Path], settings: Settings) -> None:
    """The settings, the members and the manifest over them all."""
    (folder / MEMBERS).mkdir(parents=True)
    files = {ENSEMBLE: json.dumps({"format": FORMAT, **settings._asdict()}, indent=1).encode() + b"\n"}
    io.write(folder / ENSEMBLE, files[ENSEMBLE])
    files |= {place(number): member(run, folder / MEMBERS / str(number)) for number, run in enumerate(runs)}
    digests = {name: manifest.digest(data) for name, data in files.items()}
    io.write(folder / manifest.NAME, manifest.seal({"files": digests, "pending": {}}))


def member(run: Path, place: Path) -> bytes:
    """Copy what `load` reads of a run, checked; the bytes of its new manifest, which keeps what was noted in the old one."""
    table, contents = retry_on_publish(run, lambda sealed: read_snapshot(run, sealed))[1:]
    noted = {name: value for name, value in table.items() if name not in ("format", "versions")}
    digests = {name: manifest.digest(data) for name, data in contents.items()}
    sealed = manifest.seal({**noted, "files": digests, "pending": {}})
    io.write_directory(place, {**contents, manifest.NAME: sealed})
    return sealed


def open_ensemble(snapshot: Snapshot, device: str) -> SequencePredictor:
    """The ensemble in a snapshot, whose files were checked; each member is read by the manifest that was checked there."""
    path, contents = snapshot.path, snapshot.files
    settings = read(contents[ENSEMBLE], path / ENSEMBLE)
    missing = [place(number) for number in range(len(settings.weights)) if place(number) not in contents]
    if missing:
        raise DamagedError(f"{path}: its manifest has no {missing[0]}, and {ENSEMBLE} has {len(settings.weights)} weights")
    members = [open_member(path, number, contents[place(number)], device) for number in range(len(settings.weights))]
    try:
        combined = ensemble(members, average=settings.average, weights=settings.weights)
    except ValueError as error:
        raise DamagedError(f"{path} is no ensemble: {error}") from error
    chosen = load_head(snapshot.table, path)
    combined.head = combined.head if chosen == Head() else chosen
    return combined


def open_member(path: Path, number: int, sealed: bytes, device: str) -> SequencePredictor:
    """A member of the ensemble in `path`."""
    folder = path / MEMBERS / str(number)
    predictor = assemble(read_directory(folder, sealed), device, member=True)
    if not isinstance(predictor, SequencePredictor):
        raise DamagedError(
            f"{folder} is a run of {predictor.name}, which writes no text, and members of an ensemble write it"
        )
    return predictor


def read(data: bytes, path: Path) -> Settings:
    """The settings of an ensemble, from bytes that anybody may have written."""
    try:
        table: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is not JSON: {error}") from error
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise DamagedError(f"{path} needs to be the settings of an ensemble, format {FORMAT}")
    average, weights = table.get("average"), table.get("weights")
    if not isinstance(average, str) or average not in AVERAGES:
        raise DamagedError(f"{path}: average needs to be one of {', '.join(AVERAGES)}, got {average!r}")
    if not isinstance(weights, list) or not all(
        type(weight) in (int, float) and not abs(weight) > MOST for weight in weights
    ):
        raise DamagedError(f"{path}: weights need to be a list of numbers, got {weights!r:.80}")
    if len(weights) > LARGEST:
        raise DamagedError(f"{path} has {len(weights):,} weights, and an ensemble has at most {LARGEST} members")
    return Settings(average, tuple(map(float, weights)))


def place(number: int) -> str:
    """Path of a member's manifest, as the manifest of the ensemble names it."""
    return f"{MEMBERS}/{number}/{manifest.NAME}"
