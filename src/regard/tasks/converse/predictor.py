"""Predictor of models that converse: an input is the turns so far, and a conversation keeps them."""

from collections.abc import Sequence

from regard.inference.sequence_predictor import SequencePredictor
from regard.tasks.converse.turns import join_turns


class DialoguePredictor(SequencePredictor):
    """Model that answers the turns of a dialogue, which stand between tabs or the mark of a turn."""

    has_tabs = True

    def reply(self, turns: Sequence[str], *, beam: int | None = None) -> str:
        """Answer to the turns so far, the oldest of which are forgotten where they are too many."""
        return self.predict(join_turns(turns), beam=beam).text
