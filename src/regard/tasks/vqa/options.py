"""Command-line options of vqa, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "question": {
        "commands": ("predict", "view"),
        "help": "Question about each picture (vqa); without it, an input is PATH TAB QUESTION.",
        "models": "models that answer questions about pictures (vqa)",
    },
}
