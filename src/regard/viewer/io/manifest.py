"""A trace as its manifest, plain JSON that names arrays, and those arrays. `rebuild.py` makes a trace of them again.

The manifest is described by `schema.json`. An array that stands in several places, such as the mask of all layers, is stored
once.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from regard.data.axis import Array, Audio, Axis, Image, Series, Text
from regard.viewer.io.check_attention import heads_of
from regard.viewer.io.container import NAMES
from regard.viewer.io.errors import TraceError
from regard.viewer.metrics.masks import causal
from regard.viewer.metrics.matrices import scale
from regard.viewer.metrics.quantise import quantise
from regard.viewer.trace import AttentionMap, Beams, Edge, Example, Frame, Links, Node, Trace

FORMAT, VERSION = "attn-trace", 1


class Arrays:
    """Arrays by name, on their way into a file."""

    def __init__(self) -> None:
        self.named: dict[str, Array] = {}
        self._known: dict[tuple[bytes, str, tuple[int, ...]], str] = {}

    def add(self, name: str, array: Array | None) -> str | None:
        """Store an array under a name; None stays None."""
        if array is None:
            return None
        dtype = array.dtype.newbyteorder("<")
        if dtype not in NAMES:
            raise TraceError(f"the array {name!r} is of type {array.dtype}; a trace holds {', '.join(map(str, NAMES))}")
        self.named[name] = np.ascontiguousarray(array, dtype)
        return name

    def share(self, name: str, array: Array) -> str:
        """Add an array, unless an equal one exists; returns the name of either."""
        content = (hashlib.sha256(np.ascontiguousarray(array).data).digest(), array.dtype.str, array.shape)
        if content not in self._known:
            self.add(name, array)
            self._known[content] = name
        return self._known[content]


def describe(trace: Trace, *, exact: bool = True) -> tuple[dict[str, Any], dict[str, Array]]:
    """The manifest of a trace, and the arrays that it names."""
    arrays = Arrays()
    graph = {"nodes": [_node(node) for node in trace.graph.nodes], "edges": [_edge(edge) for edge in trace.graph.edges]}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": trace.name, "graph": graph},
        "examples": [_example(example, str(number), arrays, exact) for number, example in enumerate(trace.examples)],
        "training": [_frame(frame, f"r/{number}", arrays) for number, frame in enumerate(trace.training)],
        "notes": list(trace.notes),
    }
    return manifest, arrays.named


def _node(node: Node) -> dict[str, Any]:
    sizes = {"in": {role: list(shape) for role, shape in node.inputs.items()}, "out": node.output and list(node.output)}
    about = dict(node.about)
    return {"id": node.id, "kind": node.kind, "parent": node.parent, **sizes, "params": node.parameters, "about": about}


def _edge(edge: Edge) -> dict[str, Any]:
    return {"from": edge.start, "to": edge.end, "shape": list(edge.shape), "role": edge.role}


def _example(example: Example, number: str, arrays: Arrays, exact: bool) -> dict[str, Any]:
    axes = {name: _axis(axis, f"t/{number}/{place}", arrays) for place, (name, axis) in enumerate(example.axes.items())}
    attentions = [
        _attention_map(attention_map, f"a/{number}/{place}", arrays, exact)
        for place, attention_map in enumerate(example.attentions)
    ]
    steps = [
        {
            "query": step.query,
            "token": step.token,
            "logprob": step.logprob,
            "candidates": [list(candidate) for candidate in step.candidates],
        }
        for step in example.steps
    ]
    beams = example.beams and _beams(example.beams, f"b/{number}", arrays)
    gold = example.gold and _gold(example.gold)
    table = {"title": example.title, "axes": axes, "attentions": attentions, "steps": steps, "beams": beams, "gold": gold}
    check = example.faithfulness
    return table if check is None else table | {"faithfulness": asdict(check) | {"keys": list(check.keys)}}


def _gold(gold: Links) -> dict[str, Any]:
    pairs = {name: [list(pair) for pair in links] for name, links in (("sure", gold.sure), ("possible", gold.possible))}
    return {"query": gold.query, "key": gold.key, **pairs}


def _axis(axis: Axis, name: str, arrays: Arrays) -> dict[str, Any]:
    entry: dict[str, Any]
    if isinstance(axis, Text):
        spans = [None if span is None else list(span) for span in axis.spans]
        entry = {
            "pieces": list(axis.pieces),
            "text": axis.text,
            "spans": spans,
            "special": list(axis.special),
            "lang": axis.lang,
        }
    elif isinstance(axis, Audio):
        entry = {"length": axis.length, "seconds_per_step": axis.seconds_per_step, "rate": axis.rate}
        entry["spectrogram"] = arrays.add(f"{name}/spectrogram", axis.spectrogram)
        entry["sound"] = arrays.add(f"{name}/sound", axis.sound)
    elif isinstance(axis, Image):
        entry = {"grid": list(axis.grid), "size": list(axis.size), "prefix": list(axis.prefix)}
        entry["pixels"] = arrays.add(f"{name}/pixels", axis.pixels)
    elif isinstance(axis, Series):
        entry = {"names": list(axis.names), "split": axis.split, "dates": axis.dates}
        entry["times"], entry["values"] = arrays.add(f"{name}/times", axis.times), arrays.add(f"{name}/values", axis.values)
    else:
        entry = {"length": axis.length}
    return {"kind": axis.kind, **entry}


def _attention_map(attention_map: AttentionMap, name: str, arrays: Arrays, exact: bool) -> dict[str, Any]:
    mask, allowed = _mask(attention_map, name, arrays)
    return {
        "id": attention_map.name,
        "query": attention_map.query,
        "key": attention_map.key,
        "layer": attention_map.layer,
        "heads": heads_of(attention_map),
        **_weights(attention_map, name, arrays, exact),
        "mask": mask,
        "allowed": allowed,
        "rows": None if attention_map.rows is None else list(attention_map.rows),
        "rows_sum_to": 1 if attention_map.sums_to_one else None,
        "source": attention_map.source,
        "scores": arrays.add(f"{name}/scores", attention_map.scores),
        "values": arrays.add(f"{name}/values", attention_map.values),
        "statistics": {
            statistic: arrays.add(f"{name}/statistics/{statistic}", array)
            for statistic, array in attention_map.statistics.items()
        },
    }


def _weights(attention_map: AttentionMap, name: str, arrays: Arrays, exact: bool) -> dict[str, Any]:
    """Weights of 8 bits, for display, and the exact ones."""
    coded: dict[str, Any] = {"weights": None, "dtype": "u8", "encoding": "sqrt", "scale": 1.0, "exact": None}
    if attention_map.weights is None:
        return coded
    if not exact and attention_map.weights.min() < 0:
        raise TraceError(
            f"attention {attention_map.name!r} has negative weights, which 8 bits cannot hold; save it with exact=True"
        )
    coded["scale"] = scale(attention_map)
    eight_bits = np.empty(attention_map.weights.shape, np.uint8)
    for head, matrix in enumerate(attention_map.weights):  # one at a time: in float32 all of them may not fit
        eight_bits[head] = quantise(matrix, coded["scale"])
    coded["weights"] = arrays.add(name, eight_bits)
    if exact:
        coded["exact"] = arrays.add(
            f"{name}/{'f16' if attention_map.weights.dtype == np.float16 else 'f32'}", attention_map.weights
        )
    return coded


def _mask(attention_map: AttentionMap, name: str, arrays: Arrays) -> tuple[str, str | None]:
    allowed = attention_map.allowed
    if allowed is None or allowed.all():
        return "full", None
    if causal(allowed):
        return "causal", None
    return "given", arrays.share(f"{name}/allowed", allowed)


def _beams(beams: Beams, name: str, arrays: Arrays) -> dict[str, Any]:
    return {
        "parents": arrays.add(f"{name}/parents", beams.parents),
        "tokens": [list(row) for row in beams.tokens],
        "scores": arrays.add(f"{name}/scores", beams.scores),
        "ended": arrays.add(f"{name}/ended", beams.ended),
        "best": list(beams.best),
        "attention": beams.name,
        "weights": arrays.add(f"{name}/weights", beams.weights),
    }


def _frame(frame: Frame, name: str, arrays: Arrays) -> dict[str, Any]:
    weights: Mapping[str, Any] = {
        attention_map: arrays.add(f"{name}/{place}", array)
        for place, (attention_map, array) in enumerate(frame.weights.items())
    }
    return {"step": frame.step, "loss": frame.loss, "example": frame.example, "attentions": weights}
