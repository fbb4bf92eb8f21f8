"""Loading of a trained model for an engine: native, ONNX or CTranslate2."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor
    from regard.inference.sequence_predictor import SequencePredictor as Writer

NATIVE = "native"
ENGINES = (NATIVE, "onnx", "ctranslate2")
PRECISIONS: tuple[Literal["auto", "float32", "int8", "bf16"], ...] = ("auto", "float32", "int8", "bf16")
"""Of the native engine."""


UNTRACED = {"ctranslate2": "a trace needs the weights of every attention, and the engine ctranslate2 gives those of one"}
"""Engines without traces, with the reason."""


def traceable(engine: str) -> None:
    """Raise for an engine without traces, before anything is computed."""
    if engine in UNTRACED:
        raise ConfigError(f"{UNTRACED[engine]}: leave --engine or --trace out (--align shows that one)")


def opened(
    directory: Path, device: str = "auto", engine: str = NATIVE, precision: str = "auto", compiled: bool = False
) -> "Predictor":
    """A run directory, ready to be asked. Another engine than PyTorch is `opened` of regard.interop.ENGINE.engine."""
    if engine not in ENGINES:
        raise ConfigError(f"--engine needs to be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine != NATIVE:
        if compiled:
            raise ConfigError(f"--compile is for the engine native, got --engine {engine}: leave one of the two out")
        plain = "float32" if precision == "auto" else precision
        writer: Writer = import_module(f"regard.interop.{engine}.engine").opened(directory, device, plain)
        return writer
    if precision not in PRECISIONS:
        raise ConfigError(f"--precision needs to be one of {', '.join(PRECISIONS)}, got {precision!r}")
    from regard.inference.load import load
    from regard.inference.sequence_predictor import SequencePredictor
    from regard.interop.onnx.engine import allow

    model = load(directory, device)
    if not isinstance(model, SequencePredictor):
        if precision not in ("auto", "float32") or compiled:
            raise ConfigError(
                f"--precision and --compile are for models that write text, and {directory} is of {model.name}"
            )
        return model
    allow(model, precision)
    if precision != "auto":
        chosen = PRECISIONS[PRECISIONS.index(precision)]
        model.config = replace(model.config, search=replace(model.config.search, precision=chosen))
    if compiled:
        compile_in(model)
    return model


def compile_in(model: "Writer") -> None:
    """Enable compiled search code, which is in the cache folder of the user, never beside the model."""
    if next(model.model.parameters()).device.type == "cpu":
        on_cpu(model)
    elif model.config.model.decoder != "transformer":
        raise ConfigError(
            f"--compile is for transformer decoders on a GPU, and this one is {model.config.model.decoder}, whose steps are "
            "replayed as they are: leave it out"
        )
    model.compiled = True


def on_cpu(model: "Writer") -> None:
    """Compile the CPU search code, or raise for a model that it does not cover.

    Where it cannot be compiled, a warning has the reason, and the eager engine answers.
    """
    from regard.decoding.engines.cpp.select import find_reason, is_usable

    if why := find_reason(getattr(model.model, "decoder", None)):
        raise ConfigError(f"--compile does not cover this model on a CPU: {why}; leave it out")
    is_usable(model.config.search.precision)
