"""Command-line options of route, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "samples": {
        "commands": ("predict", "evaluate"),
        "help": "Number of sampled routes, of which the shortest is the answer (route); without it, greedy routes.",
        "models": "models of routes (route)",
    },
}
