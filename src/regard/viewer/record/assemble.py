"""From the calls of a run to its examples: one look for each attention and each row of the batch.

A decoder that writes step by step asks with one query at a time: its calls become the rows of one look. What looks at the
target so far sees one key more at each step, and the keys to come were not allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from torch import nn

from regard.attention.statistics import BY_KEY
from regard.attention.visual import Visual
from regard.data.axis import Array, Axis, Image, Index
from regard.viewer import source
from regard.viewer.record.calls import Call
from regard.viewer.trace import AttentionMap, Example

Between = Mapping[str, tuple[str, str]]
"""The names of the query axis and the key axis of each attention, by its name."""


@dataclass
class Run:
    """All calls of one pass, in the order in which each attention was first asked."""

    title: str = ""
    calls: dict[str, list[Call]] = field(default_factory=dict)
    beams: bool = False
    """True if several hypotheses of one source were decoded at once, which only a search can tell apart."""

    def add(self, name: str, call: Call) -> None:
        """One call more."""
        self.calls.setdefault(name, []).append(call)

    def queries(self, name: str) -> int:
        """Number of queries of an attention so far."""
        return sum(call.queries for call in self.calls.get(name, ()))


def examples(run: Run, between: Between, known_axes: Mapping[str, Axis] | None = None) -> list[Example]:
    """One example for each row of the batch, with axes of plain numbers where none are given."""
    if run.beams:
        raise ValueError(
            "several hypotheses of one source were asked for at once, and which row became which only the search knows; "
            "SequencePredictor.trace(texts, beam=4) follows them, or search greedily while recording"
        )
    sizes = {name: {call.batch for call in calls} for name, calls in run.calls.items()}
    batches = set().union(*sizes.values())
    if len(batches) > 1:
        name = next((name for name, size in sizes.items() if len(size) > 1), list(sizes)[-1])
        raise ValueError(
            f"the attention {name!r} was asked for {' and then '.join(map(str, sorted(batches, reverse=True)))} rows in one "
            "run, so its rows cannot be told apart; record one sentence at a time, or call rec.begin() between runs"
        )
    rows = batches.pop()
    titles = [run.title] if rows == 1 else [f"{run.title} row {row}".strip() for row in range(rows)]
    return [_example(run, row, between, known_axes or {}, title) for row, title in enumerate(titles)]


def _example(run: Run, row: int, between: Between, known_axes: Mapping[str, Axis], title: str) -> Example:
    axes: dict[str, Axis] = {}
    attentions: list[AttentionMap] = []
    layers: dict[tuple[str, str], int] = {}
    for name, calls in run.calls.items():
        attention_map = joined(name, calls, row)
        query, key = between[name]
        queries, keys = sizes_of(attention_map, calls)
        grids = [call.grid for call in calls]
        query = _place(axes, known_axes, query, queries, grids[-1])
        key = _place(axes, known_axes, key, keys, grids[-1])
        layer = layers[query, key] = layers.get((query, key), -1) + 1
        attentions.append(replace(attention_map, query=query, key=key, layer=layer))
    return Example(axes, tuple(attentions), title=title)


def _place(
    axes: dict[str, Axis], known_axes: Mapping[str, Axis], name: str, length: int, grid: tuple[int, int] | None
) -> str:
    """The name under which an axis of this length stands among the axes: its own, or with the length where that is taken."""
    if name in known_axes:
        if len(known_axes[name]) != length:
            raise ValueError(
                f"the axis {name!r} has {len(known_axes[name])} places, and {length} were recorded; "
                "give as many as the model saw"
            )
        axes[name] = known_axes[name]
    for free in (name, f"{name} ({length})"):
        if free not in axes:
            known = grid is not None and grid[0] * grid[1] == length
            axes[free] = Image(grid, grid) if known and grid is not None else Index(length)
        if len(axes[free]) == length:
            return free
    raise AssertionError("an axis that is named after its length has that length")


def joined(name: str, calls: Sequence[Call], row: int) -> AttentionMap:
    """All calls of an attention as one look of one row of the batch; its axes are named by the caller."""
    keys = max(call.keys for call in calls)
    kept, queries = _extent(calls, row, keys), None
    if len(calls) == 1 and calls[0].itself and calls[0].queries == keys:
        queries = kept  # padding asks too, where a sequence looks at itself
    cut = (slice(None), slice(queries), slice(kept))
    parts = [_padded(call.weights[row], keys) for call in calls if call.weights is not None]
    weights = np.concatenate(parts, axis=1)[cut] if parts else None
    rows = tuple(row for call in calls for row in call.rows or () if queries is None or row < queries)
    if calls[0].rows is not None and weights is not None:
        weights = weights[:, : len(rows)] if rows else None  # all chosen ones may be padding
    chosen = calls[0].rows is not None and weights is not None
    allowed = _allowed(calls, row, keys)
    scores = [_padded(call.scores[row], keys, -np.inf) for call in calls if call.scores is not None]
    values = calls[-1].values
    heads = None if weights is None else len(weights)
    return AttentionMap(
        name,
        "",
        "",
        weights,
        allowed=None if allowed is None else _needed(allowed[(..., *cut[1:])]),
        rows=rows if chosen else None,
        sums_to_one=all(call.sums_to_one for call in calls),
        source=source.join_codes(call.source for call in calls),
        statistics=_statistics(calls, row, keys, queries, kept),
        scores=np.concatenate(scores, axis=1)[cut] if scores and not chosen else None,
        values=None if values is None or heads not in (None, values.shape[1]) else values[row][:, :kept],
    )


def sizes_of(attention_map: AttentionMap, calls: Sequence[Call]) -> tuple[int, int]:
    """Number of queries and keys of an attention, from any of its records."""
    if attention_map.weights is not None and attention_map.rows is None:
        return attention_map.weights.shape[1], attention_map.weights.shape[2]
    return attention_map.statistics["entropy"].shape[1], attention_map.statistics["received"].shape[1]


def _extent(calls: Sequence[Call], row: int, keys: int) -> int:
    """Number of keys up to the last real one."""
    keep = calls[-1].keep
    if keep is None:
        return keys
    real = np.flatnonzero(keep[row])
    return int(real[-1]) + 1 if len(real) else keys


def _padded(data: Array, keys: int, filling: float = 0.0) -> Array:
    return np.pad(data, ((0, 0), (0, 0), (0, keys - data.shape[-1])), constant_values=filling)


def _allowed(calls: Sequence[Call], row: int, keys: int) -> Array | None:
    """Mask of the keys of each query, (heads, queries, keys) or (1, queries, keys); None: everything, always."""
    if all(call.allowed is None and call.keys == keys for call in calls):
        return None
    parts = []
    for call in calls:
        mask = np.ones((1, 1, call.keys), bool) if call.allowed is None else call.allowed[min(row, len(call.allowed) - 1)]
        parts.append(_padded(np.broadcast_to(mask, (len(mask), call.queries, call.keys)), keys))
    heads = max(len(part) for part in parts)
    return np.concatenate([np.broadcast_to(part, (heads, *part.shape[1:])) for part in parts], axis=1)


def _needed(allowed: Array) -> Array | None:
    """The mask without an axis of heads where they all see the same, and None where it hides nothing."""
    if allowed.all():
        return None
    return allowed[0] if (allowed == allowed[:1]).all() else allowed


def _statistics(calls: Sequence[Call], row: int, keys: int, queries: int | None, kept: int) -> dict[str, Array]:
    """By query one after the other, by key added up."""
    statistics: dict[str, Array] = {}
    for name in calls[0].statistics:
        parts = [call.statistics[name][row] for call in calls]
        if name in BY_KEY:
            statistics[name] = np.sum([np.pad(part, ((0, 0), (0, keys - part.shape[-1]))) for part in parts], axis=0)[
                :, :kept
            ]
        else:
            statistics[name] = np.concatenate(parts, axis=1)[:, :queries]
    return statistics


def between(model: nn.Module, attentions: Mapping[str, nn.Module], run: Run, itself: Mapping[str, bool]) -> Between:
    """Query axis and key axis of every recorded attention, from its place in the model.

    An encoder attends from source to source. A decoder attends from the target, the token that it predicts, to the prefix,
    which begins with BOS, and to the source. Elsewhere an axis is named after the part of the model.
    """
    axes: dict[str, tuple[str, str]] = {}
    for name in run.calls:
        module, top = attentions[name], name.partition(".")[0]
        if isinstance(module, Visual):
            _, query, key = module.axes
            axes[name] = query or "map", key
        elif (part := half(model, name)) is not None:
            query = "source" if part == "encoder" else "target"
            own = "source" if part == "encoder" else "written"
            axes[name] = query, own if itself.get(name) else "source"
        elif itself.get(name):
            axes[name] = top, top
        else:
            axes[name] = f"{top} queries", f"{top} keys"
    return axes


def half(model: nn.Module | None, name: str) -> str | None:
    """The half of an encoder-decoder that an attention is in, also where a model has several such pairs."""
    for part in name.split("."):
        pair = all(isinstance(getattr(model, half, None), nn.Module) for half in ("encoder", "decoder"))
        if pair and part in ("encoder", "decoder"):
            return part
        model = getattr(model, part, None)
    return None
