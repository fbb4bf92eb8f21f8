"""Options for image models: options of text generation are refused, and --question is appended to each picture.

A model for visual question answering reads PATH TAB QUESTION; --question asks one question about all pictures.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.config import quoted
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor

WRITING = ("beam", "unknown", "prefix", "include", "exclude", "constraints", "stream", "listen")
"""Options of predict for text generation."""


def check_text_options(model: "Predictor", options: Mapping[str, Any], settings: Sequence[str]) -> None:
    """Raise for options of text generation and a model that writes no text."""
    from regard.inference.forward_predictor import ForwardPredictor

    if not isinstance(model, ForwardPredictor):
        return
    used = [f"--{name}" for name in WRITING if options.get(name)]
    used += [f"--{each.partition('=')[0]}" for each in settings if each.partition("=")[0] != "search.batch_size"]
    if used:
        raise ConfigError(f"{used[0]} is for models that write text, and this one ({model.name}) writes none; leave it out")


def check_question(model: "Predictor", question: str | None) -> None:
    """Raise for a question to a model that takes none."""
    from regard.tasks.vqa.predictor import Answerer

    if question is not None and not isinstance(model, Answerer):
        raise ConfigError(
            f"--question is for models that answer questions about pictures (vqa), and this one ({model.name}) takes "
            "none; leave it out"
        )


def append_question(inputs: Iterable[str], question: str | None) -> Iterator[str]:
    """The inputs, with the common question appended where there is one."""
    for number, text in enumerate(inputs, 1):
        if question is not None and "\t" in text:
            raise DataError(
                f"--question is for every picture, and input {number} has a question of its own, {quoted(text)}; "
                "leave one of the two out"
            )
        yield text if question is None or not text.strip() else f"{text}\t{question}"
