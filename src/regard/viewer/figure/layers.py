"""A layered drawing of a directed graph, after Sugiyama: ranks, order within a rank, places; no outside program.

Sugiyama, Tagawa and Toda 1981, https://doi.org/10.1109/TSMC.1981.4308636
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

Bend = tuple[int, int]
"""A place that a long arrow passes: the arrow's number, and the rank."""
Name = str | Bend

SWEEPS = 12


class Layout(NamedTuple):
    """Middles of the boxes as (x, rank), and the points that each arrow passes between its ends."""

    places: dict[str, tuple[float, int]]
    bends: list[list[tuple[float, int]]]


def layout(sizes: dict[str, float], arrows: Sequence[tuple[str, str]], gap: float) -> Layout:
    """Places for boxes of these widths; arrows lead to higher ranks, but for those that close a circle."""
    forward = _acyclic(list(sizes), arrows)
    rank = _ranks(list(sizes), forward)
    widths: dict[Name, float] = {name: size for name, size in sizes.items()}  # noqa: C416  names are of two kinds here
    above: dict[Name, list[Name]] = {name: [] for name in sizes}
    below: dict[Name, list[Name]] = {name: [] for name in sizes}
    rows: list[list[Name]] = [[] for _ in range(max(rank.values(), default=0) + 1)]
    for name in sizes:
        rows[rank[name]].append(name)
    for number, (start, end) in enumerate(forward):
        chain: list[Name] = [start, *((number, level) for level in range(rank[start] + 1, rank[end])), end]
        for bend in chain[1:-1]:
            assert not isinstance(bend, str)
            widths[bend], above[bend], below[bend] = gap, [], []
            rows[bend[1]].append(bend)
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    places = _place(_order(rows, above, below), above, below, widths, gap)
    bends = [
        [(places[(number, level)], level) for level in range(rank[start] + 1, rank[end])]
        for number, (start, end) in enumerate(forward)
    ]
    turned = [
        bend if arrow == original else bend[::-1] for bend, arrow, original in zip(bends, forward, arrows, strict=True)
    ]
    return Layout({name: (places[name], rank[name]) for name in sizes}, turned)


def _acyclic(names: list[str], arrows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The arrows, those turned round that lead back to where the search is: recurrence."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for start, end in arrows:
        after[start].append(end)
    state: dict[str, int] = {}
    back: set[tuple[str, str]] = set()
    for root in names:
        if root in state:
            continue
        state[root] = 1
        walk = [(root, iter(after[root]))]
        while walk:
            name, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                state[name] = 2
                walk.pop()
            elif state.get(following) == 1:
                back.add((name, following))
            elif following not in state:
                state[following] = 1
                walk.append((following, iter(after[following])))
    return [(end, start) if (start, end) in back else (start, end) for start, end in arrows]


def _ranks(names: list[str], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The longest way to each box; a box that nothing leads to stands just before what it leads to."""
    rank = dict.fromkeys(names, 0)
    for _ in names:
        changed = False
        for start, end in arrows:
            if rank[end] < rank[start] + 1:
                rank[end], changed = rank[start] + 1, True
        if not changed:
            break
    led_to = {end for _, end in arrows}
    for name in names:
        ahead = [rank[end] for start, end in arrows if start == name]
        if name not in led_to and ahead:
            rank[name] = min(ahead) - 1
    return rank


def _order(rows: list[list[Name]], above: Mapping[Name, list[Name]], below: Mapping[Name, list[Name]]) -> list[list[Name]]:
    """Order each rank by its neighbours' middles, down and up again until few arrows cross."""
    rows = [list(row) for row in rows]
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        levels = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for level in levels:
            spots = {name: float(place) for place, name in enumerate(rows[level - 1 if down else level + 1])}
            before = {name: float(place) for place, name in enumerate(rows[level])}
            middles = {
                name: _mean([spots[neighbour] for neighbour in neighbours[name]], before[name]) for name in rows[level]
            }
            rows[level] = sorted(rows[level], key=middles.__getitem__)
    return rows


def _place(
    rows: list[list[Name]],
    above: Mapping[Name, list[Name]],
    below: Mapping[Name, list[Name]],
    widths: Mapping[Name, float],
    gap: float,
) -> dict[Name, float]:
    """Places along each rank: every box near the middle of its neighbours, none closer to the next than the gap."""
    places: dict[Name, float] = {}
    for row in rows:
        at = 0.0
        for name in row:
            places[name] = at + widths[name] / 2
            at += widths[name] + gap
        for name in row:
            places[name] -= (at - gap) / 2
    for sweep in range(2 * SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            near = {
                name: _mean([places[neighbour] for neighbour in (*above[name], *below[name])], places[name]) for name in row
            }
            places |= _apart(row, near, widths, gap)
    return places


def _apart(row: list[Name], near: Mapping[Name, float], widths: Mapping[Name, float], gap: float) -> dict[Name, float]:
    """The places closest to those wished for in which nothing touches: neighbours that would are moved as one block."""
    offset, total = [], 0.0
    for place, name in enumerate(row):
        if place:
            total += (widths[row[place - 1]] + widths[name]) / 2 + gap
        offset.append(total)
    blocks: list[tuple[float, int]] = []
    for name, shift in zip(row, offset, strict=True):
        blocks.append((near[name] - shift, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (left, one), (right, other) = blocks[-2:]
            blocks[-2:] = [((left * one + right * other) / (one + other), one + other)]
    starts = [start for start, count in blocks for _ in range(count)]
    return {name: start + shift for name, start, shift in zip(row, starts, offset, strict=True)}


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
