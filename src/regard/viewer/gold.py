"""Gold links of a trace: parsing, and the alignment error rate of attention against them."""

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


def parse_links(value: Any, attentions: Sequence[AttentionMap]) -> Links:
    """Parse links, or pairs of indices on the axes of the default attention."""
    if isinstance(value, Links):
        return value
    sure, possible = (value.get("sure", ()), value.get("possible", ())) if isinstance(value, Mapping) else (value, ())
    if isinstance(value, Mapping) and (strange := value.keys() - {"sure", "possible"}):
        raise TraceError(f"{WANTED}; got the key {min(map(str, strange))!r}")
    query, key = _default_axes(attentions)
    return Links(query, key, _pairs(sure), _pairs(possible))


def add_gold(trace: Trace, value: Any, example: int = 0) -> Trace:
    """Copy of a trace with gold links in one of its examples."""
    old = trace.example(example)
    new = replace(old, gold=parse_links(value, old.attentions))
    check_gold(new, f"example {example}")
    place = example % len(trace.examples)
    return replace(trace, examples=(*trace.examples[:place], new, *trace.examples[place + 1 :]))


def alignment_errors(trace: Trace, attention: str | None, example: int) -> Array:
    """The alignment error rate of every head of an attention."""
    shown, attention_map = trace.example(example), trace.attention(attention, example)
    rates = of_heads(attention_map, shown.axes, shown.gold)
    if rates is not None:
        return rates
    if attention_map.weights is None or attention_map.rows is not None:
        raise ValueError(
            f"the alignment error of {attention_map.name} needs the weights of every query, and not all were recorded"
        )
    links = "no gold links" if shown.gold is None else f"gold links from {shown.gold.query!r} to {shown.gold.key!r} alone"
    raise ValueError(
        f"example {example} has {links}, and {attention_map.name} looks from {attention_map.query!r} to "
        f"{attention_map.key!r}; give it some: trace.with_gold([(query, key), ...])"
    )


def _default_axes(attentions: Sequence[AttentionMap]) -> tuple[str, str]:
    """Axes of the last cross-attention or, without one, of the last attention."""
    if not attentions:
        raise TraceError(
            "gold links belong to the axes of an attention, and there is none; name axes: Links(query=AXIS, ...)"
        )
    rates = next(
        (attention_map for attention_map in reversed(attentions) if attention_map.query != attention_map.key), attentions[-1]
    )
    return rates.query, rates.key


def _pairs(value: Any) -> tuple[tuple[int, int], ...]:
    try:
        return tuple((_whole(query), _whole(key)) for query, key in value)
    except (TypeError, ValueError):
        raise TraceError(f"{WANTED}, with whole numbers; got {str(value)[:80]}") from None


def _whole(place: Any) -> int:
    if isinstance(place, bool) or int(place) != place:
        raise ValueError
    return int(place)
