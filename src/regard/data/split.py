"""Held-out split of one table, for validation where no other table is given for that.

About one source in ten is held out, with all of its lines, so that none is on both sides. A hash of the source alone
decides, so that lines that are added move no others:

    held out(source)  ⇔  SHA-256(source) < 0.1          its first eight bytes, as a number from 0 to 1

Where that leaves a side empty, as it may with a few sources, the least hash is held out, or the greatest is not.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from regard.errors import DataError

SHARE = 0.1
"""Share of the sources that are held out."""


class HeldOut(NamedTuple):
    """Number of lines of a table that are held out, and by what they were chosen: a word for a source."""

    size: int
    lines: int
    table: str
    by: str

    def notes(self) -> dict[str, Any]:
        """Fields by their names in a log."""
        return {"held": self.size, "lines": self.lines, "table": self.table, "by": self.by}

    def __str__(self) -> str:
        are = "is" if self.size == 1 else "are"
        return f"data.valid is not given: {self.size:,} of {self.lines:,} lines of {self.table} {are} held out, by {self.by}"


def hold_out(sources: Sequence[str], table: str, by: str) -> list[bool]:
    """Select the lines that are held out, as one boolean for each line's source."""
    ranks = {source: hash_fraction(source) for source in sources}
    if len(ranks) < 2:
        raise DataError(
            f"data.valid is not given, and nothing can be held out of {table}, which has one {by} and no other: "
            f"{next(iter(ranks), '')!r}; name a file to validate with, data.valid"
        )
    ordered = sorted(ranks, key=lambda source: (ranks[source], source))
    count = sum(rank < SHARE for rank in ranks.values())
    chosen = set(ordered[: min(max(count, 1), len(ordered) - 1)])
    return [source in chosen for source in sources]


def hash_fraction(source: str) -> float:
    """Hash of a source as a number from 0 to 1, equal on every machine."""
    return int.from_bytes(sha256(source.encode()).digest()[:8], "big") / 2**64
