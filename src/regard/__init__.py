"""Regard: attention in three visible stages, score -> normalise -> combine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.registry import find

if TYPE_CHECKING:
    from regard.inference.ensemble.build import ensemble
    from regard.inference.load import load, see
    from regard.viewer.html.view import view
    from regard.viewer.record import record
    from regard.viewer.trace import Trace

__version__ = "0.1.0"
__all__ = ["Trace", "__version__", "ensemble", "find", "load", "record", "see", "view"]

HOMES = {
    "ensemble": "regard.inference.ensemble.build",
    "load": "regard.inference.load",
    "record": "regard.viewer.record",
    "see": "regard.inference.load",
    "Trace": "regard.viewer.trace",
    "view": "regard.viewer.html.view",
}
"""Where the names live that need torch or numpy, and so are fetched when they are asked for."""


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
