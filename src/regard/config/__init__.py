"""Configuration: frozen dataclasses with defaults that work, shared by every task.

A task's config is built from the parts in `settings.py`. Text from outside (TOML, the command line) is checked where it
comes in, by `reading.py`; inside the package a config is plain Python.
"""

from regard.config.reading import ConfigError, check, everything, parse, parse_text, plain, read, write
from regard.config.settings import AttentionPart, Data, Dropout, Model, OutputPart, Search, Train

__all__ = [
    "AttentionPart",
    "ConfigError",
    "Data",
    "Dropout",
    "Model",
    "OutputPart",
    "Search",
    "Train",
    "check",
    "everything",
    "parse",
    "parse_text",
    "plain",
    "read",
    "write",
]
