"""Commands and models that tell what they see: what is only for models that write text is refused in words.

A model that is asked questions about pictures reads PATH TAB QUESTION; --question is what all pictures are asked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.config import quoted
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor

WRITING = ("beam", "unknown", "prefix", "include", "exclude", "constraints", "stream", "listen")
"""Options of predict that say how a text is looked for."""


def sees(model: "Predictor", options: Mapping[str, Any], settings: Sequence[str]) -> None:
    """Raise where a model that writes nothing is told how to write."""
    from regard.inference.forward_predictor import ForwardPredictor

    if not isinstance(model, ForwardPredictor):
        return
    given = [f"--{name}" for name in WRITING if options.get(name)]
    given += [f"--{each.partition('=')[0]}" for each in settings if each.partition("=")[0] != "search.batch_size"]
    if given:
        raise ConfigError(f"{given[0]} is for models that write text, and this one ({model.name}) writes none; leave it out")


def asks(model: "Predictor", question: str | None) -> None:
    """Raise where a model is asked a question that takes none."""
    from regard.tasks.vqa.predictor import Answerer

    if question is not None and not isinstance(model, Answerer):
        raise ConfigError(
            f"--question is for models that answer questions about pictures (vqa), and this one ({model.name}) is asked "
            "none; leave it out"
        )


def posed(inputs: Iterable[str], question: str | None) -> Iterator[str]:
    """Every input, with the question behind it where there is one for all."""
    for number, text in enumerate(inputs, 1):
        if question is not None and "\t" in text:
            raise DataError(
                f"--question is what every picture is asked, and input {number} has a question of its own, {quoted(text)}; "
                "leave one of the two out"
            )
        yield text if question is None or not text.strip() else f"{text}\t{question}"
