"""Held out: the lines of one table that are validated with, where no other table is given for that.

About one source in ten is held out, with all of its lines, so that none is on both sides. Which ones, a hash of the source
alone says, so that lines that are added move no others:

    held(source)  ⇔  SHA-256(source) < 0.1          its first eight bytes, as a number from 0 to 1

Where that leaves a side empty, as it may with a few sources, the least hash is held out, or the greatest is not.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from regard.errors import DataError

SHARE = 0.1
"""How many of the sources are held out."""


class HeldOut(NamedTuple):
    """How many of the lines of a table are held out, and by what they were chosen: a word for a source."""

    held: int
    lines: int
    table: str
    by: str

    def __str__(self) -> str:
        are = "is" if self.held == 1 else "are"
        return f"data.valid is not given: {self.held:,} of {self.lines:,} lines of {self.table} {are} held out, by {self.by}"


def held(sources: Sequence[str], table: str, by: str) -> list[bool]:
    """For each line, whose source is given, whether it is held out."""
    ranks = {source: rank(source) for source in sources}
    if len(ranks) < 2:
        raise DataError(
            f"data.valid is not given, and nothing can be held out of {table}, which has one {by} and no other: "
            f"{next(iter(ranks), '')!r}; name a file to validate with, data.valid"
        )
    ordered = sorted(ranks, key=lambda source: (ranks[source], source))
    count = sum(each < SHARE for each in ranks.values())
    chosen = set(ordered[: min(max(count, 1), len(ordered) - 1)])
    return [source in chosen for source in sources]


def rank(source: str) -> float:
    """From 0 to 1, the same for the same source on every machine."""
    return int.from_bytes(sha256(source.encode()).digest()[:8], "big") / 2**64
