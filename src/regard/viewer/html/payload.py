"""JSON payload of a page, as in viewer/src/payload.ts. Matrices are added by `budget.py`, or served as tiles."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

import numpy as np

from regard.data.axis import Array, Audio, Axis, Image, Series, Text
from regard.viewer import palettes
from regard.viewer.html import budget
from regard.viewer.html.pack import Pack
from regard.viewer.metrics import matrices
from regard.viewer.metrics.masks import causal
from regard.viewer.metrics.strength import summary
from regard.viewer.trace import AttentionMap, Beams, Example, Frame, Graph, Trace

MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "Software"), to deal in the Software without restriction, including without '
    "limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of "
    "the Software, and to permit persons to whom the Software is furnished to do so, subject to the following "
    "conditions: The above copyright notice and this permission notice shall be included in all copies or "
    'substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, '
    "EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR "
    "PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, "
    "DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN "
    "CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."
)
"""The words of the MIT licence, which must go wherever the software goes."""

LICENCES = [
    {"name": name, "licence": "MIT", "text": f"Copyright (c) {holder}\n\n{MIT}"}
    for name, holder in (
        ("preact 11.2.0", "2015-present Jason Miller"),
        ("@preact/signals 2.11.4 and signals-core 1.14.5", "2022-present Preact Team"),
        ("@dagrejs/dagre 3.1.1 and graphlib 4.0.5", "2012-2014 Chris Pettitt"),
    )
]


READY = 1 << 26
"""Cells of a trace above which a served page fetches its thumbnails instead of waiting for them."""

Table = dict[str, Any]


def payload(
    traces: Sequence[Trace], pack: Pack, *, state: str = "", language: str | None = None, tiles: str | None = None
) -> Table:
    """The page's JSON. Without `tiles`, matrices go into the pack as far as its budget reaches."""
    runs = [_run(trace, pack) for trace in traces]
    if pack.budget is not None and pack.used > pack.budget:
        raise ValueError(
            f"the statistics alone take {pack.used:,} bytes and the budget is {pack.budget:,}; give a larger budget, or "
            "serve the trace, where nothing is left out"
        )
    for number, (trace, run) in enumerate(zip(traces, runs, strict=True)):
        if tiles is None:
            budget.fill(trace, run, pack, state, len(runs) - number)
            continue
        if _cells(trace) < READY:
            budget.thumbnails(trace, run, pack)
        budget.besides(trace, run, pack)
    return {
        "format": "attn-page",
        "version": 1,
        "state": state,
        "language": language,
        "tiles": tiles,
        "runs": runs,
        "palettes": palettes.encoded(),
        "about": {"version": metadata.version("regard"), "licences": LICENCES},
    }


def _run(trace: Trace, pack: Pack) -> Table:
    """Everything about a trace but its matrices."""
    return {
        "name": trace.name,
        "notes": list(trace.notes),
        "graph": graph(trace.graph),
        "examples": [_example(trace, number, pack) for number in range(len(trace.examples))],
        "training": [],
        "omitted": [],
    }


def _example(trace: Trace, number: int, pack: Pack) -> Table:
    example = trace.examples[number]
    film = [frame for frame in trace.training if frame.example == number]
    steps = (
        {
            "query": step.query,
            "token": step.token,
            "logprob": step.logprob,
            "candidates": [list(one) for one in step.candidates],
        }
        for step in example.steps
    )
    return {
        "title": example.title,
        "axes": {name: axis(positions, pack) for name, positions in example.axes.items()},
        "attentions": [_attention(example, attention_map, film, pack) for attention_map in example.attentions],
        "steps": list(steps),
        "beams": None if example.beams is None else beams(example.beams, pack),
        "faithfulness": None if example.faithfulness is None else asdict(example.faithfulness),
    }


def _attention(example: Example, attention_map: AttentionMap, film: Sequence[Frame], pack: Pack) -> Table:
    statistics = summary(attention_map, example.axes, example.gold)
    mask = "full" if attention_map.allowed is None else "causal" if causal(attention_map.allowed) else "given"
    return {
        "id": attention_map.name,
        "query": attention_map.query,
        "key": attention_map.key,
        "layer": attention_map.layer,
        "heads": len(statistics.entropy),
        "queries": len(example.axes[attention_map.query]),
        "keys": len(example.axes[attention_map.key]),
        "mask": mask,
        "allowed": pack.add(_any_head(attention_map.allowed))
        if mask == "given" and attention_map.allowed is not None
        else None,
        "sums_to_one": attention_map.sums_to_one,
        "scale": matrices.scale(attention_map, film),
        "signed": matrices.signed(attention_map, film),
        "source": attention_map.source,
        "rows": None if attention_map.rows is None else list(attention_map.rows),
        "recorded": attention_map.weights is not None,
        "statistics": {name: pack.add(curve) for name, curve in statistics.curves.items()},
        "summary": statistics.numbers,
        "thumbnails": None,
        "top": None,
        "full": {},
        "exact": {},
        "views": {},
    }


def axis(value: Axis, pack: Pack) -> Table:
    """An axis; what each place of it is called the page works out by itself, but for text."""
    table: Table = {"kind": value.kind, "length": len(value), "labels": None}
    if isinstance(value, Text):
        spans = [None if span is None else list(span) for span in value.spans]
        table |= {"labels": value.labels, "pieces": list(value.pieces), "text": value.text, "spans": spans}
        return table | {"special": list(value.special), "lang": value.lang}
    if isinstance(value, Audio):
        table |= {"seconds_per_step": value.seconds_per_step, "rate": value.rate}
        table["spectrogram"] = None if value.spectrogram is None else pack.add(_bytes(value.spectrogram))
        return table | {"sound": None if value.sound is None else pack.add(value.sound.astype(np.float32))}
    if isinstance(value, Image):
        pixels = None if value.pixels is None else pack.add(np.asarray(value.pixels, np.uint8))
        return table | {"grid": list(value.grid), "size": list(value.size), "pixels": pixels, "prefix": list(value.prefix)}
    if isinstance(value, Series):
        table |= {"times": np.asarray(value.times, np.float64).tolist(), "names": list(value.names), "split": value.split}
        return table | {"values": pack.add(value.values.astype(np.float32)), "dates": value.dates}
    return table


def graph(value: Graph) -> Table:
    """The network's boxes and arrows."""
    nodes = [
        {
            "id": node.id,
            "kind": node.kind,
            "parent": node.parent,
            "inputs": {name: list(shape) for name, shape in node.inputs.items()},
            "output": None if node.output is None else list(node.output),
            "parameters": node.parameters,
            "about": dict(node.about),
        }
        for node in value.nodes
    ]
    edges = [{"start": edge.start, "end": edge.end, "shape": list(edge.shape), "role": edge.role} for edge in value.edges]
    return {"nodes": nodes, "edges": edges}


def beams(value: Beams, pack: Pack) -> Table:
    """A beam search; scores of rows that are nobody's, which may be infinite, become 0."""
    nobody = value.parents < 0
    return {
        "parents": value.parents.tolist(),
        "tokens": [list(row) for row in value.tokens],
        "scores": np.where(nobody, 0.0, value.scores).tolist(),
        "ended": value.ended.astype(bool).tolist(),
        "best": list(value.best),
        "attention": value.name,
        "weights": None if value.weights is None else pack.add(value.weights.astype(np.float16)),
    }


def _any_head(allowed: Array) -> Array:
    """Mask of the keys that any head may attend to, as bytes of 0 and 1."""
    return np.asarray(allowed.any(0) if allowed.ndim == 3 else allowed).astype(np.uint8)


def _bytes(spectrogram: Array) -> Array:
    """A spectrogram from its smallest number to its largest, in 256 steps."""
    values = spectrogram.astype(np.float32)
    low, high = float(values.min()), float(values.max())
    return np.asarray(np.round((values - low) / max(high - low, 1e-12) * 255).astype(np.uint8))


def _cells(trace: Trace) -> int:
    """Cells of all matrices together."""
    return sum(
        attention.weights.size
        for example in trace.examples
        for attention in example.attentions
        if attention.weights is not None
    )
