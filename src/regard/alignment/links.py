"""Links: which place of a source belongs to which place of a target."""

from collections.abc import Iterable
from typing import NamedTuple

from regard.errors import DataError

Link = tuple[int, int]
"""A place in the source and one in the target, both from 0."""
Links = frozenset[Link]


class Gold(NamedTuple):
    """Links that people made: those they were `sure` of, and others that they found `possible`.

    They are (source, target) pairs, but for the viewer, which compares any two axes: its pairs are (query, key).
    """

    sure: Iterable[Link]
    possible: Iterable[Link] = ()


def flipped(links: Iterable[Link]) -> Links:
    """The same links seen from the other side."""
    return frozenset((target, source) for source, target in links)


def inside(links: Iterable[Link], sources: int, targets: int, where: str) -> None:
    """Raise for a link to a place that a pair of so many words does not have."""
    for source, target in links:
        if not (0 <= source < sources and 0 <= target < targets):
            raise DataError(
                f"{where} links {source}-{target}, counted from 0, and the pair has {sources} words in its source and "
                f"{targets} in its target; are the links of these lines, in this order, and counted from 0?"
            )
