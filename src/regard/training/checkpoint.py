"""Checkpoints: everything a training needs to go on as if it had never stopped.

    checkpoints/<step>/state.safetensors      every tensor: model, optimiser, moving average
    checkpoints/<step>/manifest.json          the step, the counters, the SHA-256 of the tensors, sealed

At a start the newest that is whole is taken; a damaged one is moved aside, never deleted and never built upon.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from regard import io, manifest
from regard.errors import DamagedError, DamagedWarning
from regard.training.tensor_file import read_tensors

STATE = "state.safetensors"


class Checkpoint(NamedTuple):
    """One of them, read and found whole."""

    path: Path
    step: int
    tensors: dict[str, Tensor]
    counters: dict[str, Any]


def save(folder: Path, step: int, tensors: Mapping[str, Tensor], counters: Mapping[str, Any]) -> Path:
    """Write the checkpoint of a step."""
    from safetensors.torch import save as serialise

    data = serialise(dict(tensors))
    table = {"step": step, "counters": dict(counters), "files": {STATE: manifest.digest(data)}}
    io.write_directory(folder / str(step), {STATE: data, manifest.NAME: manifest.seal(table)})
    return folder / str(step)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint and check every byte of it."""
    table = manifest.unseal(path / manifest.NAME)
    if str(table.get("step")) != path.name:
        raise DamagedError(f"{path} holds the checkpoint of step {table.get('step')}")
    if not isinstance(table.get("files"), dict) or not isinstance(table.get("counters"), dict):
        raise DamagedError(f"{path / manifest.NAME} lacks its files or its counters")
    tensors = read_tensors(path / STATE, (table["files"].get(STATE),))
    return Checkpoint(path, int(path.name), tensors, table["counters"])


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; those found damaged on the way are moved aside, with a warning each."""
    saved = steps(folder)
    for step in reversed(saved):
        path = folder / str(step)
        try:
            return load(path)
        except DamagedError as damage:
            aside = move_aside(path)
            consequence = (
                "going on from the checkpoint before it" if step != saved[0] else "there is no other: training begins anew"
            )
            text = f"{damage}; moved to {aside.name}, {consequence}"
            warnings.warn(text, DamagedWarning, stacklevel=2)
    return None


def steps(folder: Path) -> list[int]:
    """The steps that there is something of, oldest first."""
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isascii() and path.name.isdigit())


def regular(folder: Path, every: int) -> list[int]:
    """The steps saved because their time had come, not because a signal asked for it."""
    return [step for step in steps(folder) if every and step % every == 0]


def prune(folder: Path, keep: int, every: int) -> None:
    """Keep the newest two of all and the newest `keep` of the regular ones."""
    recent = {*steps(folder)[-2:], *regular(folder, every)[-keep:]}
    for step in set(steps(folder)) - recent:
        io.remove(folder / str(step))


def move_aside(path: Path) -> Path:
    """Rename a damaged checkpoint to .bad-*, so that its place is free and somebody can look at it."""
    aside = path.with_name(f".bad-{path.name}")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f".bad-{path.name}-{count}")
    os.rename(path, aside)
    io.flush(path.parent)
    return aside
