"""Command-line options of vqa and answer, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "question": {
        "commands": ("predict", "view"),
        "help": "Question about each picture (vqa) or story (answer); without it, an input is PATH or STORY, TAB, QUESTION.",
        "models": "models that answer questions about pictures (vqa) or stories (answer)",
    },
}
