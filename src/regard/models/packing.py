"""Checks that a model and its settings can be trained on packed rows, which hold several examples each."""

from torch import nn

from regard.attention.module import Attention
from regard.config import Train
from regard.errors import ConfigError
from regard.models.layers.beam_attention import POSITIONAL

ROW_SETTINGS = (
    "scheduled_sampling",
    "coverage_weight",
    "doubly_stochastic_weight",
    "guided_attention",
    "guided_alignment",
    "moment_matching",
    "sequence_loss",
)
"""Settings of a training run that take a row for one example."""


def check_settings(train: Train) -> None:
    """Raise where packing is combined with a setting that needs one example per row."""
    for name in ROW_SETTINGS if train.packing_length else ():
        if (value := getattr(train, name)) not in (0, None, "none"):
            raise ConfigError(
                f"train.packing_length={train.packing_length} puts several examples into a row, and train.{name}={value} "
                "takes a row for one; leave one of the two out"
            )


def check_model(model: nn.Module) -> None:
    """Raise where a part of a model would mix the examples of a packed row."""
    for kind in ("encoder", "decoder"):
        part = getattr(model, kind)
        if type(part).__name__ != "Transformer":
            raise ConfigError(
                f"train.packing_length needs a transformer encoder and decoder, got a {type(part).__name__.lower()} {kind}, "
                "which would read on from one example into the next; leave it out"
            )
    looks = {name: module for name, module in model.named_modules() if isinstance(module, Attention)}
    if not any(name.endswith(".cross") for name in looks):
        raise ConfigError(
            "train.packing_length needs an attention to the source, and this model has its source in one vector, that of "
            "the whole row; leave it out, or name an attention"
        )
    for name, attended in looks.items():
        if reason := find_obstacle(name, attended):
            raise ConfigError(f"train.packing_length cannot be used with the attention {name}: it {reason}; leave it out")


def find_obstacle(name: str, attention: Attention) -> str | None:
    """Reason why this attention cannot separate the examples of a packed row, or None."""
    if attention.unpackable:
        return attention.unpackable
    if getattr(attention.normalise, "rewarded", False):
        return "draws where it looks, and a draw is credited with what follows in its whole row"
    return POSITIONAL if name.endswith(".cross") and attention.positional else None
