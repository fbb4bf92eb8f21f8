"""Command-line options of anomaly, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "threshold": {
        "commands": ("predict",),
        "help": "Score from which a step is an alarm (anomaly); without it, the one that training has set.",
        "models": "models that score the steps of a series (anomaly)",
    },
}
