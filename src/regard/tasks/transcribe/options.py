"""Command-line options of transcribe, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "times": {
        "commands": ("predict", "align"),
        "help": "Answer with the times of all words: srt, vtt, textgrid or json (transcribe).",
        "models": "models that transcribe sound (transcribe)",
    },
    "hotwords": {
        "commands": ("predict", "evaluate"),
        "help": "File of phrases, one on each line, that the search prefers, such as names (transcribe).",
        "models": "models that transcribe sound (transcribe)",
        "is_file": True,
    },
}
