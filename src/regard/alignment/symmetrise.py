"""Symmetrisation: the alignments of both directions of a pair become one.

A model aligns each target word with few source words, and a model of the reverse direction each source word with few target
words; the two together are better than either.
"""

from collections.abc import Iterable, Iterator, Sequence

from regard.alignment.heads import Merge, align_pairs
from regard.alignment.links import Link, Links, transpose
from regard.alignment.soft import AlignmentModel, SoftAlignment, compute_soft_alignments
from regard.data.table import Record
from regard.errors import DataError

HEURISTICS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")

NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Offsets in the source and in the target: adjacent first, then diagonal."""


def reverse_links(
    model: AlignmentModel,
    records: Sequence[Record],
    pairs: Sequence[SoftAlignment],
    *,
    tokens: bool = False,
    threshold: float | None = None,
    by: Merge = "weights",
) -> list[Links]:
    """The links of a model of the reverse direction, as (source, target).

    `pairs` are the soft alignments of the same records by the forward model; both models need the same units.
    """
    reversed_records = [record._replace(source=record.target or "", target=record.source) for record in records]
    reverse_pairs = compute_soft_alignments(model, reversed_records, tokens=tokens)
    for pair, other, record in zip(pairs, reverse_pairs, records, strict=True):
        forward = len(pair.source.texts), len(pair.target.texts)
        reverse = len(other.target.texts), len(other.source.texts)
        if forward != reverse:
            raise DataError(
                f"{record.where} has {forward[0]} and {forward[1]} units to one model, {reverse[0]} and {reverse[1]} to the "
                "other, and two directions need the same; align words, or train both with the same tokens"
            )
    return [transpose(links) for links in align_pairs(reverse_pairs, model.head, threshold=threshold, by=by)]


def symmetrise(forward: Iterable[Link], reverse: Iterable[Link], heuristic: str = "grow-diag") -> Links:
    """One alignment from the links of two directions, both written (source, target).

        intersection            links of both
        union                   links of either
        grow-diag               the intersection; then, as long as there is one, a link of the union that is adjacent or
                                diagonal to a link of the result, and one of whose words has no link yet
        grow-diag-final         then every link of `forward`, then of `reverse`, one of whose words has no link yet
        grow-diag-final-and     then those of which neither word has one

    Koehn, Och and Marcu 2003, https://aclanthology.org/N03-1017; the order of the links, which matters, is that
    of Moses (symal): target word by target word, source word by source word, for as many rounds as anything is added.
    """
    if heuristic not in HEURISTICS:
        raise ValueError(f"two directions become one by {', '.join(HEURISTICS)}, got {heuristic!r}")
    forward, reverse = frozenset(forward), frozenset(reverse)
    if heuristic in ("intersection", "union"):
        return forward & reverse if heuristic == "intersection" else forward | reverse
    alignment = _GrownAlignment(forward & reverse)
    alignment.grow_diag(forward | reverse)
    if heuristic != "grow-diag":
        for links in (forward, reverse):
            alignment.final(links, both=heuristic.endswith("and"))
    return frozenset(alignment.links)


class _GrownAlignment:
    """Links of the result so far, and the words that have one."""

    def __init__(self, links: Iterable[Link]):
        self.links = set[Link]()
        self.sources, self.targets = set[int](), set[int]()
        for link in links:
            self.add(link)

    def add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

    def is_free(self, link: Link, both: bool = False) -> bool:
        """True if one of a link's words, or with `both` each of them, has no link yet."""
        source, target = link[0] not in self.sources, link[1] not in self.targets
        return source and target if both else source or target

    def grow_diag(self, union: Links) -> None:
        ordered, before = _sorted_by_target(union), -1
        while len(self.links) > before:
            before = len(self.links)
            for link in ordered:
                if link in self.links:
                    for neighbour in _neighbours(link):
                        if neighbour in union and self.is_free(neighbour):
                            self.add(neighbour)

    def final(self, links: Links, both: bool) -> None:
        for link in _sorted_by_target(links):
            if self.is_free(link, both):
                self.add(link)


def _sorted_by_target(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (link[1], link[0]))


def _neighbours(link: Link) -> Iterator[Link]:
    return ((link[0] + source, link[1] + target) for source, target in NEIGHBOURS)
