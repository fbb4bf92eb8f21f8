"""Command-line options of speak, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "times": {
        "commands": ("predict",),
        "help": "Times of the words: textgrid, json, srt or vtt; or, of a text that is spoken (speak), a FILE of that kind.",
        "models": "models that recognise or speak words (transcribe, speak)",
    },
}
