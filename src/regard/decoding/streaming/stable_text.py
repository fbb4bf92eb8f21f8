"""The text of an answer that grows: pieces that are never taken back."""

from collections.abc import Callable, Sequence

HALF = "\ufffd"
"""What bytes are read as that are not a whole character yet."""


class Written:
    """How much of an answer has been given away; `text` says what tokens mean to a person.

    The space and the half characters at the end of a text may still become something else: they wait for what follows.
    """

    def __init__(self, text: Callable[[Sequence[int]], str]):
        self.text, self.given = text, ""

    def more(self, tokens: Sequence[int]) -> str:
        """What the first tokens of an answer add to what was given; "" where that has to wait."""
        found = self.text(tokens)
        while found and (found[-1].isspace() or found[-1] == HALF):
            found = found[:-1]
        return "" if self.given.startswith(found) else self._give(found)

    def rest(self, tokens: Sequence[int]) -> str:
        """What is left, when these are all tokens of the answer."""
        return self._give(self.text(tokens))

    def _give(self, found: str) -> str:
        if not found.startswith(self.given):
            raise ValueError(
                f"an answer that is given piece by piece needs a text that only grows: {self.given!r} has become {found!r}; "
                "ask for the whole answer with predict"
            )
        piece, self.given = found[len(self.given) :], found
        return piece
