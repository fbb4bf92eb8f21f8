"""Results of a training: the published model with its own figures, metrics.json, and how a later start resumes from them."""

import json
import math
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from torch import Tensor

from regard import io, manifest
from regard.errors import DamagedWarning
from regard.training import checkpoint
from regard.training.log import replace_nonfinite
from regard.training.run_directory import MODEL, PUBLISHED, RunDirectory
from regard.training.state import State
from regard.training.state_dict import weights

METRICS = "metrics.json"


class Published(NamedTuple):
    """Record of the published model, which stands in the manifest and changes together with the model's digest."""

    sha256: str
    step: int
    value: float | None
    """The monitored metric, of which less is better; None where it was not finite."""
    metrics: dict[str, float | None]


def resume(run: RunDirectory, state: State) -> tuple[tuple[int, int] | None, Published | None]:
    """Bring the state to the newest whole checkpoint; its step and last step evaluated, and the published model's record.

    The two need not agree. After a kill the published model may be newer than the checkpoint: the counters then follow the
    checkpoint, so that the same evaluations have the same consequences, and only what beats the record is published.
    """
    newest = checkpoint.newest(run.checkpoints)
    if newest is not None:
        state.restore(newest)
    record = published_record(run, {} if newest is None else newest.counters)
    return (None if newest is None else (state.counters.step, state.counters.evaluated)), record


def published_record(run: RunDirectory, counters: Mapping[str, Any]) -> Published | None:
    """The record of the model that lies in the directory; None where there is no model, or, with a warning, no whole one.

    Runs of earlier versions have it in the counters of their checkpoints.
    """
    table = run.manifest()
    if MODEL not in table["files"]:
        return None
    if not run.holds(MODEL):
        text = f"{run.path / MODEL} is missing or not what was written; the best model from here on takes its place"
        warnings.warn(text, DamagedWarning, stacklevel=2)
        return None
    earlier = [counters.get(name) for name in ("published", "best_step", "best", "best_figures")]
    for entry in (table.get(PUBLISHED), dict(zip(Published._fields, earlier, strict=True))):
        record = _record(entry)
        if record is not None and record.sha256 == table["files"][MODEL]:
            return record
    text = f"{run.path / MODEL} has no figures of its own in the manifest; the best model from here on takes its place"
    warnings.warn(text, DamagedWarning, stacklevel=2)
    return None


def publish(run: RunDirectory, state: State, value: float, figures: Mapping[str, float]) -> Published:
    """Make the weights of this moment, or their moving average, the model of the directory, together with their figures."""
    from safetensors.torch import save

    with nullcontext() if state.average is None else state.average.inside(state.model):
        data = save(weights(state.model))
    value_or_none = value if math.isfinite(value) else None
    record = Published(manifest.digest(data), state.counters.step, value_or_none, replace_nonfinite(figures))
    run.publish({MODEL: data}, record._asdict())
    return record


def load_published_weights(run: RunDirectory) -> dict[str, Tensor]:
    """The weights that the directory holds."""
    from safetensors.torch import load

    return load(manifest.verified(run.path / MODEL, run.manifest()["files"].get(MODEL)))


def write_metrics(run: RunDirectory, state: State, record: Published, reason: str) -> dict[str, Any]:
    """Write metrics.json: the figures of the published model, and what it took to get there."""
    counters = state.counters
    table = {
        "step": record.step,
        "valid": record.metrics,
        "updates": counters.step,
        "tokens": counters.tokens,
        "seconds": round(counters.seconds, 3),
        "skipped": counters.skipped,
        "parameters": sum(parameter.numel() for parameter in state.model.parameters()),
        "ended": reason,
    }
    run.check()
    io.write(run.path / METRICS, json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    return table


def _record(entry: Any) -> Published | None:
    """A record as JSON has it, or None for what is none."""
    if not isinstance(entry, dict) or entry.keys() != set(Published._fields):
        return None
    record, number = Published(**entry), float | int | None
    if not isinstance(record.sha256, str) or not isinstance(record.step, int) or not isinstance(record.metrics, dict):
        return None
    return record if all(isinstance(value, number) for value in (record.value, *record.metrics.values())) else None
