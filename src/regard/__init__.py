"""Regard: attention in three visible stages, score -> normalise -> combine."""

from typing import TYPE_CHECKING, Any

from regard.lookup import find

if TYPE_CHECKING:
    from regard.trained import load

__version__ = "0.1.0"
__all__ = ["__version__", "find", "load"]


def __getattr__(name: str) -> Any:
    """`load` needs torch, so it is fetched when it is asked for."""
    if name == "load":
        from regard.trained import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
