"""Links: pairs of a source position and a target position that are aligned."""

from collections.abc import Iterable
from typing import NamedTuple

from regard.errors import DataError

Link = tuple[int, int]
"""A position in the source and one in the target, both from 0."""
Links = frozenset[Link]


class Gold(NamedTuple):
    """Gold links, annotated by people: `sure` ones, and others that are `possible`.

    They are (source, target) pairs, but for the viewer, which compares any two axes: its pairs are (query, key).
    """

    sure: Iterable[Link]
    possible: Iterable[Link] = ()


def transpose(links: Iterable[Link]) -> Links:
    """Links with source and target exchanged."""
    return frozenset((target, source) for source, target in links)


def check_links(links: Iterable[Link], sources: int, targets: int, where: str) -> None:
    """Raise for a link to a position beyond the words of a pair."""
    for source, target in links:
        if not (0 <= source < sources and 0 <= target < targets):
            raise DataError(
                f"{where} links {source}-{target}, counted from 0, and the pair has {sources} words in its source and "
                f"{targets} in its target; are the links of these lines, in this order, and counted from 0?"
            )
