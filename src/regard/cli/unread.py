"""Inputs that cannot be read, such as damaged pictures: each is told with its line, and all others are answered."""

from typing import TYPE_CHECKING

import typer

from regard.data.lines import DataError

if TYPE_CHECKING:
    from regard.seeing import Seeing
    from regard.trained import Trained

TOLD = 10
"""How many are told one by one; the last word says how many there were."""
ALONE = "input:1"
"""What the reader of an input calls one that is asked alone."""


class Unread:
    """What could not be read of a file of inputs, called `name`. `worded` where there are words in them, too."""

    def __init__(self, name: str, worded: bool = False):
        self.name, self.worded, self.many = name, worded, 0
        self.texts: set[str] = set()

    def note(self, number: int, text: str, error: DataError) -> None:
        """Tell why the input on a line, counted from 1, was not read."""
        self.many += 1
        self.texts.add(text)
        if self.many <= TOLD:
            why = str(error).removeprefix(ALONE).removeprefix(":").strip()
            typer.echo(f"regard: {self.name}:{number}: {why}", err=True)

    def last(self, first: int, many: int) -> str:
        """The last word, where so many inputs have no answer."""
        more = f", the first {TOLD} of which are named above" * (self.many > TOLD)
        words = ", or the model knows none of its words, or they are too many" * self.worded
        return (
            f"{self.name}:{first} has no answer ({many:,} such in all{more}): its picture cannot be read{words}; such "
            "answers are left empty. Mend these lines, and ask them again. Everything else is answered"
        )


def unread(model: "Trained | Seeing", text: str | None, file: str | None) -> Unread | None:
    """Who takes note of what cannot be read of a file of pictures, or of standard input; a single one has none."""
    from regard.data.image.sight import Sight

    if text is not None or not isinstance(model.codec, Sight):
        return None
    return Unread(file or "input", worded=hasattr(model.codec, "longest_source"))
