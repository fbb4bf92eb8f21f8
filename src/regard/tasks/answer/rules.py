"""Conditions under which settings of question answering have an effect."""

from collections.abc import Callable
from typing import Any

from regard.tasks._validate import Rule


def _named(*kinds: str) -> Callable[[Any], bool]:
    return lambda config: config.model.kind in kinds


MEMORY = Rule(_named("memory"), "a memory network (model.kind=memory)")
READER = Rule(_named("reader"), "the attentional reader (model.kind=reader)")

RULES = {
    "model.hops": Rule(
        _named("memory", "dynamic", "universal"), "a network of several hops (model.kind=memory, dynamic or universal)"
    ),
    "model.heads": Rule(_named("universal"), "a universal Transformer (model.kind=universal)"),
    "model.sentence": Rule(_named("memory", "dynamic"), "a network of sentence vectors (model.kind=memory or dynamic)"),
    **dict.fromkeys(("model.tying", "model.temporal", "model.nonlinear", "train.linear_start"), MEMORY),
    "model.temporal_noise": Rule(
        lambda config: config.model.kind == "universal" or (config.model.kind == "memory" and config.model.temporal),
        "a network with a temporal encoding (model.kind=memory or universal, model.temporal=true)",
    ),
    "model.blocks": Rule(_named("entity"), "an entity network (model.kind=entity)"),
    **dict.fromkeys(("model.layers", "model.cell", "model.attention.name"), READER),
    "dropout.attention": Rule(
        _named("memory", "universal", "reader"), "a network that reads by attention (model.kind=memory, universal or reader)"
    ),
    "train.supporting_facts": Rule(
        lambda config: config.model.kind != "entity",
        "a network that attends to sentences or words (model.kind=memory, dynamic, universal or reader)",
    ),
    "data.tasks": Rule(lambda config: config.data.train is not None, "files of your own (data.train=FILE)"),
}
"""Conditions by the path of the setting."""
