"""Configuration: frozen dataclasses with defaults that work, shared by every task.

A task's config is built from the parts in `settings.py` and, for pictures, `image.py`. Text from outside (TOML, the
command line) is checked where it comes in, by `parse.py`; inside the package a config is plain Python.
"""

from regard.config.image import (
    ClassifyData,
    ClassifyModel,
    DetectData,
    DetectModel,
    ImageData,
    ImageDropout,
    ImageModel,
    ImageTextData,
    ImageToTextModel,
    RetrieveData,
    RetrieveDropout,
    RetrieveModel,
    VitPart,
    VqaData,
    VqaModel,
)
from regard.config.parse import check, everything, parse, parse_text, plain, quoted, read, shortened, write
from regard.config.settings import AttentionPart, Data, Dropout, EncoderDecoder, Model, OutputPart, Search, Train
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
    "EncoderDecoder",
    "ImageData",
    "ImageDropout",
    "ImageModel",
    "ImageTextData",
    "ImageToTextModel",
    "Model",
    "OutputPart",
    "RetrieveData",
    "RetrieveDropout",
    "RetrieveModel",
    "Search",
    "Train",
    "VitPart",
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
