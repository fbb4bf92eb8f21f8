"""Command-line options of retrieve, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "index": {
        "commands": ("predict",),
        "help": "Index that a model of `retrieve` searches, from `regard index`; by default its samples.",
        "models": "models of retrieve",
        "is_file": True,
    },
}
