"""Links that people made, in a trace: how they are given, and how far each attention is from them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.data.axis import Array
from regard.viewer.io.check_gold import check_gold
from regard.viewer.io.errors import TraceError
from regard.viewer.metrics.alignment import of_heads
from regard.viewer.trace import AttentionMap, Links, Trace

WANTED = (
    "gold is [(query, key), ...], {'sure': [...], 'possible': [...]} or Links(query=AXIS, key=AXIS, sure=..., possible=...)"
)


def links(given: Any, attentions: Sequence[AttentionMap]) -> Links:
    """Links as they are, or pairs of places on the axes of the attention that is looked at first."""
    if isinstance(given, Links):
        return given
    sure, possible = (given.get("sure", ()), given.get("possible", ())) if isinstance(given, Mapping) else (given, ())
    if isinstance(given, Mapping) and (strange := given.keys() - {"sure", "possible"}):
        raise TraceError(f"{WANTED}; got the key {min(map(str, strange))!r}")
    query, key = _between(attentions)
    return Links(query, key, _pairs(sure), _pairs(possible))


def added(trace: Trace, given: Any, example: int = 0) -> Trace:
    """The trace with gold links in one of its examples."""
    old = trace.example(example)
    new = replace(old, gold=links(given, old.attentions))
    check_gold(new, f"example {example}")
    place = example % len(trace.examples)
    return replace(trace, examples=(*trace.examples[:place], new, *trace.examples[place + 1 :]))


def errors(trace: Trace, attention: str | None, example: int) -> Array:
    """The alignment error rate of every head of an attention."""
    shown, attention_map = trace.example(example), trace.attention(attention, example)
    found = of_heads(attention_map, shown.axes, shown.gold)
    if found is not None:
        return found
    if attention_map.weights is None or attention_map.rows is not None:
        raise ValueError(
            f"the alignment error of {attention_map.name} needs the weights of every query, and not all were recorded"
        )
    there = "no gold links" if shown.gold is None else f"gold links from {shown.gold.query!r} to {shown.gold.key!r} alone"
    raise ValueError(
        f"example {example} has {there}, and {attention_map.name} looks from {attention_map.query!r} to "
        f"{attention_map.key!r}; give it some: trace.with_gold([(query, key), ...])"
    )


def _between(attentions: Sequence[AttentionMap]) -> tuple[str, str]:
    """The axes of the last attention from one to another, or simply of the last, as a page opens with it."""
    if not attentions:
        raise TraceError(
            "gold links belong to the axes of an attention, and there is none; name axes: Links(query=AXIS, ...)"
        )
    found = next(
        (attention_map for attention_map in reversed(attentions) if attention_map.query != attention_map.key), attentions[-1]
    )
    return found.query, found.key


def _pairs(given: Any) -> tuple[tuple[int, int], ...]:
    try:
        return tuple((_whole(query), _whole(key)) for query, key in given)
    except (TypeError, ValueError):
        raise TraceError(f"{WANTED}, with whole numbers; got {str(given)[:80]}") from None


def _whole(place: Any) -> int:
    if isinstance(place, bool) or int(place) != place:
        raise ValueError
    return int(place)
