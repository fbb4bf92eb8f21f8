"""`predict --compile`: a search in machine code on a CPU, compiled steps of a Transformer on a GPU."""

from typing import TYPE_CHECKING

from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.inference.predictor import Trained


def compile_in(model: "Trained") -> None:
    """Let a model search with compiled code, which lies in the user's cache folder and never beside the model."""
    if next(model.model.parameters()).device.type == "cpu":
        on_cpu(model)
    elif model.config.model.decoder != "transformer":
        raise ConfigError(
            f"--compile is for transformer decoders on a GPU, and this one is {model.config.model.decoder}, whose steps are "
            "replayed as they are: leave it out"
        )
    model.compiled = True


def on_cpu(model: "Trained") -> None:
    """Make the machine code ready that searches on a CPU, or refuse a model that it does not take.

    Where it cannot be made, a warning says why, and the usual engine answers.
    """
    from regard.decoding.engines.cpp.select import find_reason, is_usable

    if why := find_reason(getattr(model.model, "decoder", None)):
        raise ConfigError(f"--compile does not cover this model on a CPU: {why}; leave it out")
    is_usable(model.config.search.precision)
