"""Turns of a dialogue as one source: the last of them, with a mark after each."""

from collections.abc import Sequence

from regard.data.records import Record
from regard.data.text.codec import TURN

LONGEST = 150
"""Words of a history; the oldest turns of a longer one are left out, so that the last ones are read whole."""


def split_turns(text: str) -> list[str]:
    """Turns of a source as it is typed or stored: between marks or tabs."""
    turns = (" ".join(turn.split()) for turn in text.replace("\t", TURN).split(TURN))
    return [turn for turn in turns if turn]


def join_turns(turns: Sequence[str]) -> str:
    """Source of the last turns, each with a mark after it; of one turn that is too long, its last words."""
    recent, words = list[str](), 0
    for turn in reversed(turns):
        words += len(turn.split())
        if words > LONGEST and recent:
            break
        recent.append(" ".join(turn.split()[-LONGEST:]))
    return " ".join(f"{turn} {TURN}" for turn in reversed(recent))


def list_answers(turns: Sequence[str], where: str) -> list[Record]:
    """Records of a dialogue: every second turn is an answer to all turns before it."""
    return [
        Record(f" {TURN} ".join(turns[:place]), turns[place], f"{where}, turn {place + 1}")
        for place in range(1, len(turns), 2)
    ]
