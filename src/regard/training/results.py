"""What a training leaves: the published model and the final figures; and how a later start takes it up."""

import json
import warnings
from contextlib import nullcontext
from typing import Any

from torch import Tensor

from regard.training import atomic, checkpoint, manifest
from regard.training.directory import MODEL, RunDirectory
from regard.training.errors import DamagedWarning
from regard.training.state import State
from regard.training.weights import weights

METRICS = "metrics.json"


def resume(run: RunDirectory, state: State) -> tuple[int, int] | None:
    """Bring the state to the newest whole checkpoint; (step, last step evaluated) of it, or None where there is none."""
    found = checkpoint.newest(run.checkpoints)
    if found is None:
        return None
    state.restore(found)
    if state.counters.best is not None and run.holds(MODEL) and not run.holds(MODEL, state.counters.published):
        # a kill came between a better model and the next checkpoint: its figures are lost, and found again on the way
        state.counters.best = None
    elif state.counters.best is not None and not run.holds(MODEL):
        text = f"{run.path / MODEL} is missing or not what was written; the best model from here on takes its place"
        warnings.warn(text, DamagedWarning, stacklevel=2)
        state.counters.best = None
    return state.counters.step, state.counters.evaluated


def publish(run: RunDirectory, state: State) -> None:
    """Make the weights of this moment, or their moving average, the model of the directory."""
    from safetensors.torch import save

    with nullcontext() if state.average is None else state.average.inside(state.model):
        data = save(weights(state.model))
    run.publish({MODEL: data})
    state.counters.published = manifest.digest(data)


def published(run: RunDirectory) -> dict[str, Tensor]:
    """The weights that the directory holds."""
    from safetensors.torch import load

    return load(manifest.verified(run.path / MODEL, run.manifest()["files"].get(MODEL)))


def report(run: RunDirectory, state: State, reason: str) -> dict[str, Any]:
    """Write metrics.json: the figures of the published model, and what it took to get there."""
    counters = state.counters
    table = {
        "step": counters.best_step,
        "valid": counters.best_figures,
        "updates": counters.step,
        "tokens": counters.tokens,
        "seconds": round(counters.seconds, 3),
        "skipped": counters.skipped,
        "parameters": sum(parameter.numel() for parameter in state.model.parameters()),
        "ended": reason,
    }
    atomic.write(run.path / METRICS, json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    return table
