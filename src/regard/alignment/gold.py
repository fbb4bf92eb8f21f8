"""Gold links for the pairs at hand."""

from collections.abc import Sequence

from regard.alignment.links import Gold, flipped, inside
from regard.alignment.pharaoh import read
from regard.alignment.soft import Soft
from regard.errors import DataError


def gold(path: str, pairs: Sequence[Soft], *, first: int = 0, flip: bool = False) -> list[Gold]:
    """The links of a file, seen to belong to the pairs; `flip` where the file writes the target's word first."""
    found = read(path, first=first, sentences=len(pairs))
    if flip:
        found = [Gold(flipped(each.sure), flipped(each.possible)) for each in found]
    for number, (pair, each) in enumerate(zip(pairs, found, strict=True), start=1):
        inside((*each.sure, *each.possible), len(pair.source.texts), len(pair.target.texts), f"{path}, pair {number},")
    if not any(each.sure for each in found):
        raise DataError(f"{path} has no sure link, and nothing can be measured without one")
    return found
