"""Regard: attention in three visible stages, score -> normalise -> combine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.registry import find

if TYPE_CHECKING:
    from regard.ensembles.gather import ensemble
    from regard.loading import load, see
    from regard.viewer.page.view import view
    from regard.viewer.record import record
    from regard.viewer.trace import Trace

__version__ = "0.1.0"
__all__ = ["Trace", "__version__", "ensemble", "find", "load", "record", "see", "view"]

HOMES = {
    "ensemble": "regard.ensembles.gather",
    "load": "regard.loading",
    "record": "regard.viewer.record",
    "see": "regard.loading",
    "Trace": "regard.viewer.trace",
    "view": "regard.viewer.page.view",
}
"""Where the names live that need torch or numpy, and so are fetched when they are asked for."""


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
