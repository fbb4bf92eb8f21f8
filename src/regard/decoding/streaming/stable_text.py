"""Streaming detokenization: text that is never taken back."""

from collections.abc import Callable, Sequence

INCOMPLETE = "\ufffd"
"""Replacement character of an incomplete UTF-8 sequence."""


class StableText:
    """Emitted part of an answer; `text` detokenizes.

    Trailing spaces and incomplete characters may still change: they wait for what follows.
    """

    def __init__(self, text: Callable[[Sequence[int]], str]):
        self.text, self.emitted = text, ""

    def more(self, tokens: Sequence[int]) -> str:
        """Text that these first tokens add to what was emitted; "" if it has to wait."""
        text = self.text(tokens)
        while text and (text[-1].isspace() or text[-1] == INCOMPLETE):
            text = text[:-1]
        return "" if self.emitted.startswith(text) else self._give(text)

    def rest(self, tokens: Sequence[int]) -> str:
        """Remaining text, given all tokens of the answer."""
        return self._give(self.text(tokens))

    def _give(self, text: str) -> str:
        if not text.startswith(self.emitted):
            raise ValueError(
                f"an answer that is given piece by piece needs a text that only grows: {self.emitted!r} has become "
                f"{text!r}; ask for the whole answer with predict"
            )
        piece, self.emitted = text[len(self.emitted) :], text
        return piece
