"""Subject of a figure: an attention of a trace, and one head or the mean of all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.data.axis import Array, Axis, Text
from regard.viewer.figure import fonts
from regard.viewer.figure.labels import labels, shown
from regard.viewer.figure.style import WIDTHS, Drawing, settings
from regard.viewer.trace import AttentionMap, Example, Trace


@dataclass(frozen=True, eq=False)
class Subject:
    """The parts of a trace that a figure shows. Without `head` it is the mean of the heads."""

    trace: Trace
    number: int
    attention: str | None
    head: int | None
    width: float
    palette: str
    text: str

    @property
    def example(self) -> Example:
        """The example that is shown."""
        return self.trace.example(self.number)

    @cached_property
    def attention_map(self) -> AttentionMap:
        """The attention that is shown."""
        if not self.example.attentions:
            raise ValueError(
                f"example {self.number} of the trace {self.trace.name!r} has no attention to draw; 'graph' needs none"
            )
        return self.trace.attention(self.attention, self.number)

    @property
    def layers(self) -> list[AttentionMap]:
        """The attentions between the same two axes, in order."""
        attention_map = self.attention_map
        return [
            attention
            for attention in self.example.attentions
            if (attention.query, attention.key) == (attention_map.query, attention_map.key)
        ]

    @property
    def queries(self) -> Axis:
        """The axis of the queries."""
        return self.example.axes[self.attention_map.query]

    @property
    def keys(self) -> Axis:
        """The axis of the keys."""
        return self.example.axes[self.attention_map.key]

    @property
    def rows(self) -> list[int]:
        """The queries that were recorded."""
        return list(self.attention_map.rows if self.attention_map.rows is not None else range(len(self.queries)))

    @cached_property
    def matrix(self) -> Array:
        """The weights that are shown, (recorded queries, keys)."""
        return matrix(self.attention_map, self.head)

    @property
    def allowed(self) -> Array | None:
        """Mask of the shown head, or of any head."""
        return allowed(self.attention_map, self.head, len(self.queries))

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            f"{self.trace.name}: {self.attention_map.name}, {'mean of heads' if self.head is None else f'head {self.head}'}"
        )

    @contextmanager
    def drawing(self, height: float, *more: str) -> Iterator[Drawing]:
        """An empty figure, and its settings while things are drawn into it; `more` is written besides the labels."""
        texts = {"": [shown(self.trace.name), *more]}
        if self.example.attentions:
            texts[""] += [self.attention_map.name, self.attention_map.query, self.attention_map.key]
            for axis in (self.queries, self.keys):
                texts.setdefault(axis.lang or "" if isinstance(axis, Text) else "", []).extend(labels(axis))
        missing = fonts.warn(texts)
        family = fonts.enough("".join(word for words in texts.values() for word in words))
        with settings({"font.family": family}):
            yield Drawing(self.width, height, self.text, family, missing)

    @property
    def page(self) -> bool:
        """True if the figure is as wide as the page."""
        return self.width > WIDTHS["column"]


def matrix(attention_map: AttentionMap, head: int | None) -> Array:
    """The weights of a head, or the mean of the heads, in float32."""
    if attention_map.weights is None:
        raise ValueError(
            f"of {attention_map.name!r} only statistics were recorded, so there is no matrix to draw; kind 'strength' draws "
            "statistics, or record it with weights=True"
        )
    if head is None:
        return attention_map.weights.mean(0, dtype=np.float32)
    if not 0 <= head < len(attention_map.weights):
        raise ValueError(
            f"{attention_map.name!r} has {len(attention_map.weights)} heads, counted from 0; asked for head {head}"
        )
    return np.asarray(attention_map.weights[head], np.float32)


def allowed(attention_map: AttentionMap, head: int | None, queries: int) -> Array | None:
    """Mask of a head, or of any head, in the rows that were recorded."""
    mask = attention_map.allowed
    if mask is None:
        return None
    if mask.ndim == 3:
        mask = np.asarray(mask.any(0) if head is None else mask[head])
    return mask[list(attention_map.rows)] if attention_map.rows is not None and len(mask) == queries else mask
