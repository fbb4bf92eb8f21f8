"""Conditions under which a setting of forecasting has an effect: `tasks/_validate.py` raises for one without."""

from collections.abc import Callable
from typing import Any

from regard.tasks._validate import Rule


def _network(*names: str) -> Callable[[Any], bool]:
    return lambda config: config.model.network in names


def _attends(config: Any) -> bool:
    return config.model.network in ("recurrent", "transformer") and config.model.attention.name != "none"


LAYERS = Rule(_network("patch", "inverted", "transformer"), "model.network=patch, inverted or transformer")
HEADS = Rule(
    _network("patch", "inverted", "transformer", "temporal_fusion"),
    "model.network=patch, inverted, transformer or temporal_fusion",
)
ATTENTION = Rule(_attends, "model.network=recurrent or transformer, with an attention")
RECURRENT = Rule(_network("recurrent"), "model.network=recurrent")
SAMPLING = Rule(
    lambda config: config.model.network == "recurrent" and config.train.scheduled_sampling != "none",
    "model.network=recurrent with train.scheduled_sampling=linear or another schedule",
)

RULES: dict[str, Rule] = {
    "model.feedforward_size": LAYERS,
    "model.self_attention": LAYERS,
    "model.norm": LAYERS,
    "model.heads": HEADS,
    "model.layers": Rule(
        lambda config: config.model.network != "linear", "a network with layers (model.network=patch or another)"
    ),
    "model.hidden_size": Rule(
        lambda config: (
            config.model.network != "linear" or bool(config.data.known or config.data.static or not config.data.train)
        ),
        "a network with hidden vectors (model.network=patch or another)",
    ),
    "model.cell": RECURRENT,
    "model.attention.name": Rule(_network("recurrent", "transformer"), "model.network=recurrent or transformer"),
    "model.attention.heads": ATTENTION,
    "model.attention.size": ATTENTION,
    "model.patch_length": Rule(_network("patch"), "model.network=patch"),
    "model.patch_stride": Rule(_network("patch"), "model.network=patch"),
    "model.trend_steps": Rule(_network("linear"), "model.network=linear"),
    "model.affine": Rule(
        lambda config: config.model.normalise == "window", "a reversible normalisation by window (model.normalise=window)"
    ),
    "model.error": Rule(lambda config: config.model.output == "points", "model.output=points"),
    "dropout.attention": HEADS,
    "dropout.embedding": LAYERS,
    "dropout.residual": Rule(
        lambda config: config.model.network != "linear", "a network with layers (model.network=patch or another)"
    ),
    "dropout.variational": Rule(lambda config: False, "a task whose recurrent networks read text"),
    "train.scheduled_sampling": RECURRENT,
    "train.scheduled_sampling_max": SAMPLING,
    "train.scheduled_sampling_steps": SAMPLING,
    "data.look_backs": Rule(lambda config: config.data.look_back == 0, "a look-back to choose (data.look_back=0)"),
}
