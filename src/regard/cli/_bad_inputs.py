"""Bad inputs, such as damaged pictures: each is reported with its line and reason, and all others are answered.

An input has none where it cannot be read, or where the model's scores of it are not finite.
"""

from collections import Counter
from typing import TYPE_CHECKING, Literal

import typer

from regard.errors import DataError

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor

Reason = Literal["unknown", "long", "unscored", "unreadable"]
"""Reason why an input has no answer: no known token, too many tokens, scores that are not finite, a damaged file."""
LISTED = 10
"""Bad inputs that are reported one by one; the summary has the total."""
ALONE = "input:1"
"""Location in the errors of a single input."""


class BadInputs:
    """Collector of the inputs of a file, called `name`, that have no answer. `has_text`: pictures come with words.

    `tokens` is the maximum source length of a model that reads text. `alone`: no other input has an answer.
    """

    def __init__(self, name: str, has_text: bool = False, tokens: int | None = None, alone: bool = False):
        self.name, self.has_text, self.tokens, self.alone, self.count = name, has_text, tokens, alone, 0
        self.texts: set[str] = set()

    def note(self, number: int, text: str, error: DataError) -> None:
        """Report why the input on a line, counted from 1, has no answer."""
        self.count += 1
        self.texts.add(text)
        if self.count <= LISTED:
            why = str(error)
            why = why.removeprefix(ALONE) if why.startswith(ALONE) else f": {why}"
            typer.echo(f"regard: {self.name}:{number}{why}", err=True)

    def summarise(self, first: int, count: int, begun: bool = False, reasons: Counter[Reason] | None = None) -> str:
        """Summary of the inputs without an answer; with `begun`, inputs that are too long were answered in part.

        `reasons` counts them by their reason. A resumed file has earlier ones, whose reasons are no longer known.
        """
        if reasons is not None and reasons.total() == count:
            return self._summarise_reasons(first, count, reasons)
        more = f", the first {LISTED} of which are named above" * (self.count > LISTED)
        if self.tokens is not None:
            done = "of what is too long the beginning was answered, and the others were left empty"
            done = done if begun else "an answer would be a guess, so it was left empty"
            return (
                f"{self.name}:{first} has nothing in it that the model knows, or more than the {self.tokens} tokens that it "
                f"reads, or scores that are not finite ({count:,} such in all): {done}; cut what is too long. Everything "
                "else is answered"
            )
        words = ", or the model knows none of its words, or they are too many" * self.has_text
        return (
            f"{self.name}:{first} has no answer ({count:,} such in all{more}): its picture cannot be read{words}, or its "
            "scores are not finite; such answers are left empty. Correct these lines, and run them again. Everything else "
            "is answered"
        )

    def _summarise_reasons(self, first: int, count: int, reasons: Counter[Reason]) -> str:
        tokens = "tokens" if self.tokens is None else f"{self.tokens} tokens"
        texts: dict[Reason, str] = {
            "unknown": "nothing in it that the model knows",
            "long": f"more than the {tokens} that the model reads",
            "unscored": "scores that are not finite",
            "unreadable": "a file that cannot be read" if self.tokens is None else "an error that is named above",
        }
        rest = "" if self.alone else ". Everything else is answered"
        if count == 1:
            [reason] = reasons
            return f"{self.name}:{first} has {texts[reason]}; its answer was left empty{rest}"
        more = f", the first {LISTED} of which are named above" * (self.count > LISTED)
        parts = [
            f"{reasons[reason]:,} {'has' if reasons[reason] == 1 else 'have'} {text}"
            for reason, text in texts.items()
            if reasons[reason]
        ]
        return (
            f"{self.name}:{first} has no answer ({count:,} such in all{more}): {', '.join(parts)}; such answers are left "
            f"empty{rest}"
        )


def collect_bad_inputs(model: "Predictor", text: str | None, file: str | None) -> BadInputs | None:
    """The collector of bad inputs of a file or of standard input; None for a single input, which is an error."""
    if text is not None:
        return None
    if not model.codec.reads_files:
        return BadInputs(file or "input", tokens=model.codec.max_source_length - 1)
    return BadInputs(file or "input", has_text=hasattr(model.codec, "max_source_length"))
