"""Regard: attention in three visible stages, score -> normalise -> combine."""

from regard.lookup import find

__version__ = "0.1.0"
__all__ = ["__version__", "find"]
