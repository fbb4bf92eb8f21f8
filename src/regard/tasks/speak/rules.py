"""Conditions under which a setting of speech synthesis has an effect: `tasks/_validate.py` raises for one without."""

from collections.abc import Callable
from typing import Any

from regard.tasks._validate import Rule


def _network(name: str) -> Callable[[Any], bool]:
    return lambda config: config.model.network == name


TRANSFORMER = Rule(_network("transformer"), "model.network=transformer")
POSTNET = Rule(lambda config: config.model.postnet_layers > 0, "a postnet (model.postnet_layers=5)")

RULES: dict[str, Rule] = {
    "model.heads": TRANSFORMER,
    "model.feedforward_size": TRANSFORMER,
    "model.kernel_size": Rule(
        lambda config: config.model.network == "tacotron" or config.model.postnet_layers > 0,
        "convolutions (model.network=tacotron, or model.postnet_layers=5)",
    ),
    "model.postnet_size": POSTNET,
    "dropout.embedding": TRANSFORMER,
    "dropout.always": Rule(lambda config: config.dropout.prenet > 0, "a prenet with dropout (dropout.prenet=0.5)"),
    "dropout.convolution": Rule(
        lambda config: config.model.network == "tacotron" or config.model.postnet_layers > 0,
        "convolutions (model.network=tacotron, or model.postnet_layers=5)",
    ),
    "dropout.variational": Rule(lambda config: False, "a task whose recurrent networks read text"),
    "train.label_smoothing": Rule(lambda config: False, "a task that chooses among words or labels"),
    "train.guided_attention": Rule(lambda config: True, "an attention over a text"),
    "model.attention.name": Rule(lambda config: True, "an attention"),
    "model.attention.size": Rule(lambda config: True, "an attention"),
}
