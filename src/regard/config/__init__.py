"""Configuration: frozen dataclasses with defaults that work, shared by every task.

A task's config is built from the parts in `settings.py`, those for pictures in `image.py`, and its own (`config.py` in the
folder of the task). Text from outside (TOML, the command line) is checked where it comes in, by `parse.py`; inside the
package a config is plain Python.
"""

from regard.config.audio import (
    AudioData,
    AudioDropout,
    AudioEncoder,
    AudioTextData,
    AudioToTextModel,
    SpeechSearch,
    SpeechTrain,
)
from regard.config.image import (
    ImageData,
    ImageDropout,
    ImageModel,
    ImageTextData,
    ImageToTextModel,
    VitPart,
)
from regard.config.parse import check, everything, parse, parse_text, plain, read, write
from regard.config.quoting import quoted, shortened
from regard.config.settings import AttentionPart, Data, Dropout, EncoderDecoder, Model, OutputPart, Search, Train
from regard.errors import ConfigError

__all__ = [
    "AttentionPart",
    "AudioData",
    "AudioDropout",
    "AudioEncoder",
    "AudioTextData",
    "AudioToTextModel",
    "ConfigError",
    "Data",
    "Dropout",
    "EncoderDecoder",
    "ImageData",
    "ImageDropout",
    "ImageModel",
    "ImageTextData",
    "ImageToTextModel",
    "Model",
    "OutputPart",
    "Search",
    "SpeechSearch",
    "SpeechTrain",
    "Train",
    "VitPart",
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
