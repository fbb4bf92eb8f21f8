"""Regard: attention in three visible stages, score -> normalise -> combine.

    from regard.attention import Additive, Attention, Causal, MultiHead, Sparsemax, attend

    run = regard.train("translate", out="runs/demo")    train a model into a run directory, or resume a run
    model = regard.load("runs/demo")                    open a trained model of any task: a run, an ensemble or an export
    prediction = model.predict("Tom chases Jerry")      its answer; also stream, trace and evaluate
    with regard.record(module) as recorder:             record every attention of a PyTorch model while it runs
        module(source, target)
    regard.view(recorder.trace())                       show a trace, in a notebook or in the browser
    regard.explain(query, key, value)                   the path that attend takes, every other, and their estimated times
    regard.find("additive")                             class of a stage or mechanism by name

The command `regard` lists, trains, evaluates and exports: `regard --help`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.registry import find

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard import attention
    from regard.api import TrainedRun, train
    from regard.attention.explain import explain
    from regard.inference.ensemble.build import ensemble
    from regard.inference.load import load
    from regard.inference.prediction import Prediction
    from regard.viewer.html.view import view
    from regard.viewer.record import record
    from regard.viewer.trace import Trace

__version__ = "0.2.0"
__all__ = [
    "Prediction",
    "Trace",
    "TrainedRun",
    "__version__",
    "attention",
    "ensemble",
    "explain",
    "find",
    "load",
    "record",
    "train",
    "view",
]

HOMES = {
    "Prediction": "regard.inference.prediction",
    "Trace": "regard.viewer.trace",
    "TrainedRun": "regard.api",
    "ensemble": "regard.inference.ensemble.build",
    "explain": "regard.attention.explain",
    "load": "regard.inference.load",
    "record": "regard.viewer.record",
    "train": "regard.api",
    "view": "regard.viewer.html.view",
}
"""Modules of the names that need torch or numpy, which are imported on first use."""


def _wait_passively() -> None:
    """Set OMP_WAIT_POLICY=passive, as the command does, where torch, which reads it at its import, is not imported yet.

    Threads that spin wait for each other on a machine with other load: a training was 200 times slower.
    """
    import os
    import sys

    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        if name == "attention":
            return import_module("regard.attention")
        if name in HOMES:
            _wait_passively()
            return getattr(import_module(HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "HOMES", "TYPE_CHECKING", "import_module"})
