"""Conditions under which settings of anomaly detection have an effect."""

from collections.abc import Callable
from typing import Any

from regard.tasks._validate import Rule


def _named(*names: str) -> Callable[[Any], bool]:
    return lambda config: config.model.detector in names


NETWORK = Rule(
    _named("reconstruction", "forecast", "association"),
    "a network of attention layers (model.detector=reconstruction, forecast or association)",
)
RECONSTRUCTION = Rule(_named("reconstruction"), "the attention autoencoder (model.detector=reconstruction)")
ASSOCIATION = Rule(_named("association"), "the Anomaly Transformer (model.detector=association)")

RULES = {
    **dict.fromkeys(("hidden_size", "feedforward_size", "layers", "heads", "self_attention", "patch"), NETWORK),
    **dict.fromkeys(("latents", "latent_size"), RECONSTRUCTION),
    **dict.fromkeys(("association_weight", "temperature"), ASSOCIATION),
    "memory": Rule(_named("memory"), "a memory of windows (model.detector=memory)"),
}
RULES = {f"model.{name}": rule for name, rule in RULES.items()}
RULES |= {"dropout.residual": NETWORK, "dropout.attention": NETWORK}
RULES |= {
    "train.label_smoothing": Rule(lambda config: False, "a task that chooses among words or labels"),
    "data.constant": Rule(lambda config: config.data.train is not None, "a table of your own (data.train=FILE)"),
}
"""Conditions by the path of the setting."""
