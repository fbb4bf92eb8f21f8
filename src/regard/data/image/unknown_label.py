"""Labels and answers that were learned: one that was not is refused, with its place."""

from collections.abc import Sequence

from regard.errors import DataError

PLACES, NAMES = 5, 20
"""How many unknown ones are listed, and how many of those that there are."""


def refuse(strange: Sequence[str], what: str, known: Sequence[str]) -> None:
    """Raise where something is strange: each with its place, `what` they are called, and those that are known."""
    if not strange:
        return
    more = f" and {len(strange) - PLACES:,} more" * (len(strange) > PLACES)
    raise DataError(
        f"{len(strange):,} {what} were not there to be learned: {', '.join(strange[:PLACES])}{more}; there are "
        f"{', '.join(known[:NAMES])}{' ...' * (len(known) > NAMES)}"
    )
