"""Inputs without an answer, such as damaged pictures: each is named with its line and why, and all others are answered.

An input has none where it cannot be read, or where the model's scores of it are not finite.
"""

from typing import TYPE_CHECKING

import typer

from regard.errors import DataError

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor

TOLD = 10
"""How many are told one by one; the last word says how many there were."""
ALONE = "input:1"
"""What the reader of an input calls one that is asked alone."""


class Unread:
    """The inputs of a file, called `name`, that have no answer. `worded` where there are words beside their pictures.

    Of a model that reads text, `tokens` are the most that it reads, and there are no pictures.
    """

    def __init__(self, name: str, worded: bool = False, tokens: int | None = None):
        self.name, self.worded, self.tokens, self.many = name, worded, tokens, 0
        self.texts: set[str] = set()

    def note(self, number: int, text: str, error: DataError) -> None:
        """Tell why the input on a line, counted from 1, has no answer."""
        self.many += 1
        self.texts.add(text)
        if self.many <= TOLD:
            why = str(error).removeprefix(ALONE).removeprefix(":").strip()
            typer.echo(f"regard: {self.name}:{number}: {why}", err=True)

    def last(self, first: int, many: int, begun: bool = False) -> str:
        """The last word, where so many inputs have no answer, or the beginning of one (`begun`) if they are too long."""
        more = f", the first {TOLD} of which are named above" * (self.many > TOLD)
        if self.tokens is not None:
            done = "of what is too long the beginning was answered, and the others were left empty"
            done = done if begun else "an answer would be a guess, so it was left empty"
            return (
                f"{self.name}:{first} has nothing in it that the model knows, or more than the {self.tokens} tokens that it "
                f"reads, or scores that are not finite ({many:,} such in all): {done}; cut what is too long. Everything "
                "else is answered"
            )
        words = ", or the model knows none of its words, or they are too many" * self.worded
        return (
            f"{self.name}:{first} has no answer ({many:,} such in all{more}): its picture cannot be read{words}, or its "
            "scores are not finite; such answers are left empty. Mend these lines, and ask them again. Everything else is "
            "answered"
        )


def unread(model: "Predictor", text: str | None, file: str | None) -> Unread | None:
    """Who takes note of the inputs of a file, or of standard input, that have no answer; a single one has none."""
    from regard.data.image.preprocess import ImageCodec

    if text is not None:
        return None
    if not isinstance(model.codec, ImageCodec):
        return Unread(file or "input", tokens=model.codec.max_source_length - 1)
    return Unread(file or "input", worded=hasattr(model.codec, "max_source_length"))
