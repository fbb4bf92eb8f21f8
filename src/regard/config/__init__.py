"""Configuration: frozen dataclasses with defaults that work, shared by every task.

A task's config is built from the parts in `settings.py` and, for pictures, `pictures.py`. Text from outside (TOML, the
command line) is checked where it comes in, by `reading.py`; inside the package a config is plain Python.
"""

from regard.config.parse import check, everything, parse, parse_text, plain, quoted, read, shortened, write
from regard.config.pictures import (
    ClassifyData,
    ClassifyModel,
    DetectData,
    DetectModel,
    PatchesPart,
    PictureData,
    PictureDropout,
    PictureModel,
    RetrieveData,
    RetrieveDropout,
    RetrieveModel,
    SightData,
    SightModel,
    VqaData,
    VqaModel,
)
from regard.config.settings import AttentionPart, Data, Dropout, Model, Network, OutputPart, Search, Train
from regard.errors import ConfigError

__all__ = [
    "AttentionPart",
    "ClassifyData",
    "ClassifyModel",
    "ConfigError",
    "Data",
    "DetectData",
    "DetectModel",
    "Dropout",
    "Model",
    "Network",
    "OutputPart",
    "PatchesPart",
    "PictureData",
    "PictureDropout",
    "PictureModel",
    "RetrieveData",
    "RetrieveDropout",
    "RetrieveModel",
    "Search",
    "SightData",
    "SightModel",
    "Train",
    "VqaData",
    "VqaModel",
    "check",
    "everything",
    "parse",
    "parse_text",
    "plain",
    "quoted",
    "read",
    "shortened",
    "write",
]
