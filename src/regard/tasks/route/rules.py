"""Conditions under which settings of routes have an effect."""

from regard.tasks._validate import Rule

NEVER = Rule(lambda config: False, "a task that chooses among words or labels")
GENERATED = Rule(lambda config: config.data.train is None, "points that are generated (no data.train)")

RULES = {
    "data.points": GENERATED,
    "data.samples": GENERATED,
    "train.label_smoothing": NEVER,
    **dict.fromkeys(
        ("dropout.embedding", "dropout.residual", "dropout.attention", "dropout.variational"),
        Rule(lambda config: False, "a network with dropout: a policy has none"),
    ),
    "model.heads": Rule(lambda config: True, ""),
    "model.feedforward_size": Rule(lambda config: True, ""),
}
"""Conditions by the path of the setting."""
