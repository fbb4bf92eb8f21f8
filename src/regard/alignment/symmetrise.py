"""Symmetrise: two directions of one pair become one alignment.

Each direction links a target word to few source words, and the other way round; the two together say more than either.
"""

from collections.abc import Iterable, Iterator

from regard.alignment.links import Link, Links

HOWS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")

NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Steps in the source and in the target: beside first, then across."""


def symmetrise(forward: Iterable[Link], reverse: Iterable[Link], how: str = "grow-diag") -> Links:
    """One alignment from the links of two directions, both written (source, target).

        intersection            links of both
        union                   links of either
        grow-diag               the intersection; then, as long as there is one, a link of the union that touches a link
                                already taken, also across a corner, and one of whose words has no link yet
        grow-diag-final         then every link of `forward`, then of `reverse`, one of whose words has no link yet
        grow-diag-final-and     then those of which neither word has one

    Koehn, Och and Marcu 2003, https://aclanthology.org/N03-1017; the order in which links are met, which matters, is that
    of Moses (symal): target word by target word, source word by source word, for as many rounds as anything is added.
    """
    if how not in HOWS:
        raise ValueError(f"two directions become one by {', '.join(HOWS)}, got {how!r}")
    there, back = frozenset(forward), frozenset(reverse)
    if how in ("intersection", "union"):
        return there & back if how == "intersection" else there | back
    grown = _Grown(there & back)
    grown.grow(there | back)
    if how != "grow-diag":
        for links in (there, back):
            grown.finish(links, both=how.endswith("and"))
    return frozenset(grown.links)


class _Grown:
    """Links taken so far, and the words that have one."""

    def __init__(self, links: Iterable[Link]):
        self.links = set[Link]()
        self.sources, self.targets = set[int](), set[int]()
        for link in links:
            self.take(link)

    def take(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

    def free(self, link: Link, both: bool = False) -> bool:
        """Whether one of a link's words, or both, have no link yet."""
        source, target = link[0] not in self.sources, link[1] not in self.targets
        return source and target if both else source or target

    def grow(self, union: Links) -> None:
        ordered, before = _ordered(union), -1
        while len(self.links) > before:
            before = len(self.links)
            for link in ordered:
                if link in self.links:
                    for near in _beside(link):
                        if near in union and self.free(near):
                            self.take(near)

    def finish(self, links: Links, both: bool) -> None:
        for link in _ordered(links):
            if self.free(link, both):
                self.take(link)


def _ordered(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (link[1], link[0]))


def _beside(link: Link) -> Iterator[Link]:
    return ((link[0] + source, link[1] + target) for source, target in NEIGHBOURS)
