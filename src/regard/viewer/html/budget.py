"""Size budget of a self-contained page: as many matrices as fit, the most informative first.

In this order: a thumbnail of every matrix; the strongest keys of every query; matrices in 8 bits, the chosen one first,
then the mean of the heads, then every head; exact values; frames of training; other matrices. Where everything fits, the
strongest keys are left out, since the matrices have them. What did not fit is listed in the page with the call that brings
it back.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import numpy as np

from regard.data.axis import Array
from regard.viewer.html.pack import Pack, Ref
from regard.viewer.html.views import views
from regard.viewer.metrics import matrices
from regard.viewer.metrics.matrices import MEAN
from regard.viewer.metrics.quantise import quantise, restore
from regard.viewer.metrics.strength import summary
from regard.viewer.trace import AttentionMap, Example, Trace

SIDE = 128
"""Cells along a side of a thumbnail."""
STRONGEST = 16
"""Keys of a query that are kept where its matrix is not."""
EXACT = 1 << 18
"""Cells above which a page holds no exact values: they hardly shrink, and 8 bits are 0.004 away at most."""
CALL = "regard view TRACE serves all of it; to_html(budget=...) and regard view --html --budget take more"

Table = dict[str, Any]


class Wish(NamedTuple):
    """Something that goes into the page if it fits, and who is told where it lies. `size` is in bytes, before packing."""

    kind: str
    size: int
    make: Callable[[], Array]
    put: Callable[[Ref], object]


class PagedAttention(NamedTuple):
    """An attention of a trace, and what the page says of it."""

    example: Example
    attention_map: AttentionMap
    table: Table

    @property
    def heads(self) -> int:
        """Number of matrices, the mean aside."""
        return 0 if self.attention_map.weights is None else self.attention_map.weights.shape[0]

    def matrix(self, head: int) -> Array:
        """A head, or the mean of all, (queries, keys)."""
        return matrices.matrix(self.example, self.attention_map, head)

    def bytes(self, head: int) -> Array:
        """Weights of a head in 8 bits."""
        return self.in_bytes(self.matrix(head))

    def in_bytes(self, weights: Array) -> Array:
        """Weights of this attention in 8 bits."""
        return matrices.in_bytes(weights, self.table["scale"], self.table["signed"])

    def halves(self, head: int) -> Array:
        """Weights of a head in float16."""
        return self.matrix(head).astype(np.float16)

    def thumbnails(self) -> Array:
        """Every head and, last, the mean, shrunk by maximum."""
        signed = self.table["signed"]
        return np.stack([matrices.reduce_bytes(self.bytes(head), SIDE, SIDE, signed) for head in (*range(self.heads), MEAN)])

    @property
    def cells(self) -> int:
        """Cells of one matrix."""
        return len(self.example.axes[self.attention_map.query]) * len(self.example.axes[self.attention_map.key])


def fill(trace: Trace, run: Table, pack: Pack, state: str = "", runs: int = 1) -> None:
    """Put as much of the matrices into the page as fits; `state` names the attention and head that come first.

    `runs` are those still to be filled, this one among them: each has the same part of what is left.
    """
    plan = _take(_wishes(trace, run, state, strongest=False), pack.copy(runs))
    if plan.left:
        plan = _take(_wishes(trace, run, state, strongest=True), pack.copy(runs))
    pack.become(plan.pack)
    for wish, ref in plan.taken:
        wish.put(ref)
    sizes, counts = Counter[str](), Counter(wish.kind for wish in plan.left)
    for wish in plan.left:
        sizes[wish.kind] += wish.size
    run["omitted"] = [{"what": f"{counts[kind]} {kind}", "bytes": sizes[kind], "call": CALL} for kind in counts]


def thumbnails(trace: Trace, run: Table, pack: Pack) -> None:
    """A thumbnail of every matrix, whatever they take: for pages that fetch the rest."""
    _grant(_thumbnails(trace, run), pack)


def besides(trace: Trace, run: Table, pack: Pack) -> None:
    """Bytes outside of tiles: frames of training, and other matrices than the weights."""
    _grant(_frames(trace, run), pack)
    _grant(_views(trace, run), pack)


def _grant(wishes: Iterator[Wish], pack: Pack) -> None:
    for wish in wishes:
        wish.put(pack.add(wish.make()))


class _Plan(NamedTuple):
    pack: Pack
    taken: list[tuple[Wish, Ref]]
    left: list[Wish]


def _take(wishes: Iterator[Wish], pack: Pack) -> _Plan:
    """Grant wishes until one does not fit; those that come after are less worth, so none is tried."""
    plan = _Plan(pack, [], [])
    for wish in wishes:
        ref = None if plan.left else pack.offer(wish.make())
        if ref is None:
            plan.left.append(wish)
        else:
            plan.taken.append((wish, ref))
    return plan


def _wishes(trace: Trace, run: Table, state: str, *, strongest: bool) -> Iterator[Wish]:
    yield from _thumbnails(trace, run)
    attention = list(_attentions(trace, run))
    if strongest:
        for entry in attention:
            yield from _strongest(entry)
    order = [*((entry, MEAN) for entry in attention), *((entry, head) for entry in attention for head in _each(entry))]
    order.sort(key=lambda pair: not _is_selected(pair[0], pair[1], state))
    for entry, head in order:
        yield Wish("matrices in 8 bits", entry.cells, partial(entry.bytes, head), _put_at(entry, "full", head))
    for entry, head in order:
        if entry.cells <= EXACT:
            yield Wish(
                "matrices of exact values", 2 * entry.cells, partial(entry.halves, head), _put_at(entry, "exact", head)
            )
    yield from _frames(trace, run)
    yield from _views(trace, run)


def _attentions(trace: Trace, run: Table) -> Iterator[PagedAttention]:
    for example, of_example in zip(trace.examples, run["examples"], strict=True):
        for attention_map, table in zip(example.attentions, of_example["attentions"], strict=True):
            if attention_map.weights is not None:
                yield PagedAttention(example, attention_map, table)


def _each(attention: PagedAttention) -> list[int]:
    """The heads by themselves; a single one is its own mean."""
    return list(range(attention.heads)) if attention.heads > 1 else []


def _is_selected(attention: PagedAttention, head: int, state: str) -> bool:
    """True if the page opens with this matrix."""
    asked = parse_qs(state.removeprefix("#"))
    return asked.get("a", [""])[0] == attention.attention_map.name and asked.get("h", ["mean"])[0] in _names(attention, head)


def _put_at(attention: PagedAttention, kind: str, head: int) -> Callable[[Ref], object]:
    return lambda ref: attention.table[kind].update(dict.fromkeys(_names(attention, head), ref))


def _names(attention: PagedAttention, head: int) -> list[str]:
    """Names of a matrix in the page; the mean of a single head is that head too."""
    return ["mean", "0"] if attention.heads == 1 else ["mean" if head == MEAN else str(head)]


def _thumbnails(trace: Trace, run: Table) -> Iterator[Wish]:
    for attention in _attentions(trace, run):
        sides = (len(attention.example.axes[name]) for name in (attention.attention_map.query, attention.attention_map.key))
        size = (attention.heads + 1) * math.prod(min(SIDE, side) for side in sides)
        yield Wish("attentions' thumbnails", size, attention.thumbnails, _within(attention.table, "thumbnails"))


def _strongest(attention: PagedAttention) -> Iterator[Wish]:
    """The strongest keys of every query, by head and, last, by the mean: their numbers and their weights."""
    count = min(STRONGEST, len(attention.example.axes[attention.attention_map.key]))
    queries = len(attention.example.axes[attention.attention_map.query])
    if not count or not queries:
        return
    keys = np.empty((attention.heads + 1, queries, count), np.uint32)
    weights = np.empty(keys.shape, np.uint8)
    scale = attention.table["scale"]
    shown = whole = 0.0
    for place, head in enumerate([*range(attention.heads), MEAN]):
        matrix = attention.matrix(head)
        size = np.abs(matrix)
        best = np.argpartition(-size, count - 1, axis=1)[:, :count]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(size, best, 1), axis=1, kind="stable"), 1)
        keys[place], weights[place] = best, attention.in_bytes(np.take_along_axis(matrix, best, 1))
        shown += float(restore(quantise(np.take_along_axis(size, best, 1), scale), scale).sum())
        whole += float(size.sum(dtype=np.float64))
    share = min(1.0, shown / whole) if whole else 1.0

    table: Table = {"share": share}

    def put(ref: Ref) -> None:  # keys without their weights, where these did not fit, are of no use
        table["keys" if ref["dtype"] == "u32" else "weights"] = ref
        attention.table["top"] = table if len(table) == 3 else None

    yield Wish("attentions' strongest keys", keys.nbytes, lambda: keys, put)
    yield Wish("attentions' strongest weights", weights.nbytes, lambda: weights, put)


def _frames(trace: Trace, run: Table) -> Iterator[Wish]:
    run["training"] = []  # a second plan begins anew
    for frame in trace.training:
        example = trace.examples[frame.example]
        attentions = {attention.name: attention for attention in example.attentions}
        scales = {entry["id"]: (entry["scale"], entry["signed"]) for entry in run["examples"][frame.example]["attentions"]}
        encoded = {name: _numbers(example, attentions[name], weights) for name, weights in frame.weights.items()}
        table: Table = {"step": frame.step, "loss": frame.loss, "example": frame.example, "weights": {}, "summary": encoded}
        run["training"].append(table)
        for name, weights in frame.weights.items():
            make = partial(_moment, example, attentions[name], weights, *scales[name])
            yield Wish("matrices of a moment of training", weights.size, make, _within(table["weights"], name))


def _moment(example: Example, attention_map: AttentionMap, weights: Array, scale: float, signed: bool) -> Array:
    """Every head of an attention at a moment of training, in 8 bits."""
    return matrices.in_bytes(matrices.every_row(example, attention_map, weights), scale, signed)


def _within(table: Table, name: str) -> Callable[[Ref], object]:
    return lambda ref: table.update({name: ref})


def _numbers(example: Example, attention_map: AttentionMap, weights: Array) -> dict[str, list[float | None]]:
    """Statistics of each head at a moment of training, one number of each kind."""
    return summary(dataclasses.replace(attention_map, weights=weights, statistics={}), example.axes, example.gold).numbers


def _views(trace: Trace, run: Table) -> Iterator[Wish]:
    for attention in _attentions(trace, run):
        for view, matrix in views(attention.example, attention.attention_map):
            table = attention.table["views"].setdefault(view.kind, {})
            yield Wish(f"matrices of {view.kind}", view.size, matrix, _within(table, view.head))
