"""Axes of a codec's sources and targets, and of the tokens that a decoder has read at each step."""

from collections.abc import Sequence
from typing import Any

from regard.data.axis import Axis, Text
from regard.data.special_tokens import BOS, NAMES


class Words:
    """Axes of a codec's sources and targets."""

    def __init__(self, codec: Any):
        self.codec = codec

    def read(self, example: Any) -> Axis:
        """Axis of a source, as its modality has it."""
        axis: Axis = self.codec.axis(example)
        return axis

    def answered(self, numbers: Sequence[int]) -> Text:
        """Axis of an answer: its tokens, and what they cover of the text that it is."""
        axis: Text = self.codec.target_axis(numbers)
        return axis

    def label(self, number: int) -> str:
        """Label of one token of an answer."""
        label: str = self.codec.target_axes.label(number)
        return label


def written(target: Text) -> Text:
    """Axis of the tokens that a decoder reads when it writes a target: the same one place later, behind BOS."""
    special = (0, *(place + 1 for place in target.special if place + 1 < len(target)))
    return Text((NAMES[BOS], *target.pieces[:-1]), target.text, (None, *target.spans[:-1]), special, target.lang)
