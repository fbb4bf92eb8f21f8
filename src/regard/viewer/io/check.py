"""Everything that must hold of a trace. What does not hold is refused by one sentence that names the first offender.

    example 0, attention 'decoder.cross', head 1, query 3: weights must sum to 1, these sum to 0.5

Axes are looked at in `check_axes.py`, attentions in `check_looks.py`, decoding in `check_decoding.py`,
gold links in `check_gold.py`.
"""

from typing import Any

import numpy as np

from regard.viewer.io.check_attention import check_look, heads_of
from regard.viewer.io.check_axes import check_axis
from regard.viewer.io.check_decoding import check_beams, check_steps
from regard.viewer.io.check_faithfulness import check_faithfulness
from regard.viewer.io.check_gold import check_gold
from regard.viewer.io.errors import TraceError, finite, floats, shaped, text
from regard.viewer.trace import Example, Frame, Graph, Trace

__all__ = ["TraceError", "check"]


def check(trace: Trace, *, quick: bool = False) -> None:
    """Raise TraceError where something does not hold.

    A `quick` check leaves out what takes more than one look at every weight: the sums of rows, and zeros where nothing is
    allowed.
    """
    text(trace.name, "the trace's name")
    if not trace.examples:
        raise TraceError(f"the trace {trace.name!r} has no example; it needs at least one")
    for number, example in enumerate(trace.examples):
        _example(example, f"example {number}", quick)
    for number, frame in enumerate(trace.training):
        _frame(frame, trace, f"training frame {number}")
    _graph(trace.graph)
    for number, note in enumerate(trace.notes):
        text(note, f"note {number}")


def _example(example: Example, where: str, quick: bool) -> None:
    text(example.title, f"{where}, title")
    for name, axis in example.axes.items():
        text(name, f"{where}, the name of an axis", empty=False)
        check_axis(axis, f"{where}, axis {name!r}")
    names: set[str] = set()
    for attention_map in example.attentions:
        text(attention_map.name, f"{where}, the name of an attention", empty=False)
        if attention_map.name in names:
            raise TraceError(f"{where}: two attentions are called {attention_map.name!r}; every one needs its own name")
        names.add(attention_map.name)
        check_look(attention_map, example.axes, f"{where}, attention {attention_map.name!r}", quick)
    check_steps(example, where)
    check_beams(example, where)
    check_gold(example, where)
    check_faithfulness(example, where)


def _frame(frame: Frame, trace: Trace, where: str) -> None:
    if frame.step < 0:
        raise TraceError(f"{where}: its step must be 0 or more, got {frame.step}")
    if frame.loss is not None and not np.isfinite(frame.loss):
        raise TraceError(f"{where}: its loss must be a finite number or None, got {frame.loss}")
    if not 0 <= frame.example < len(trace.examples):
        raise TraceError(f"{where}: it shows example {frame.example}, and the trace has {len(trace.examples)} examples")
    example = trace.examples[frame.example]
    attentions = {attention_map.name: attention_map for attention_map in example.attentions}
    for name, weights in frame.weights.items():
        if name not in attentions:
            raise TraceError(
                f"{where}: example {frame.example} has no attention {name!r}; it has {', '.join(attentions) or 'none'}"
            )
        attention_map, place = attentions[name], f"{where}, attention {name!r}"
        floats(weights, "weights", place)
        queries = len(example.axes[attention_map.query] if attention_map.rows is None else attention_map.rows)
        cells = (heads_of(attention_map), queries, len(example.axes[attention_map.key]))
        shaped(weights, cells, f"weights (heads, {attention_map.query}, {attention_map.key})", place)
        finite(weights, ("head", "query", "key"), "a weight", place)


def _graph(graph: Graph) -> None:
    known: set[str] = set()
    for node in graph.nodes:
        text(node.id, "network, the id of a node", empty=False)
        if node.id in known:
            raise TraceError(f"network: two nodes are called {node.id!r}; every one needs its own id")
        known.add(node.id)
        for name, value in node.about.items():
            _plain(value, f"network, node {node.id!r}, {name!r}")
    for node in graph.nodes:
        if node.parent is not None and node.parent not in known:
            raise TraceError(f"network, node {node.id!r}: its parent {node.parent!r} is not a node")
    for edge in graph.edges:
        for end in (edge.start, edge.end):
            if end not in known:
                raise TraceError(f"network, edge {edge.start!r} -> {edge.end!r}: {end!r} is not a node")


def _plain(value: Any, where: str) -> None:
    if not (isinstance(value, str | int) or (isinstance(value, float) and np.isfinite(value))):
        raise TraceError(f"{where}: needs a text or a finite number, got {value!r}")
