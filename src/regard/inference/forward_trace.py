"""Trace of a model of one forward pass: its network, and the weights of each attention laid over the picture."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.inference.predictor import Input
from regard.viewer.record import Recorder, record
from regard.viewer.source import ITSELF
from regard.viewer.trace import AttentionMap, Example, Graph, Trace

if TYPE_CHECKING:
    from regard.inference.forward_predictor import ForwardPredictor, ForwardTrace

PICTURE = "picture"
"""Name of the axis of the places of a picture."""
QUESTION = "question"
"""Name of the axis of the words of a question, and of the part of a model that reads them."""


def trace(predictor: "ForwardPredictor", inputs: Sequence[Input]) -> Trace:
    """Trace of a model while it answers each input."""
    if not inputs:
        raise ValueError("trace needs one input or more, got none")
    examples, graph = list[Example](), Graph()
    with nullcontext() if predictor.recorder is None else predictor.recorder.pause():
        for encoded in predictor.encode(inputs):
            recorder = record(predictor.model, graph=not examples)
            [(_, batch)] = predictor.batches([encoded])
            with recorder:
                output = predictor.infer(batch, weights=True)
            graph = graph if examples else recorder.graph()
            inner = (
                recorder if getattr(batch, "frames", None) is None else None
            )  # frames of a clip are read as so many pictures
            examples.append(build_example(inner, predictor.trace_parts(encoded, output), str(encoded.record.source)))
    missing = not any(example.attentions for example in examples)
    notes = ["This model has no attention, so there is only its network."] * missing
    return Trace(predictor.name, tuple(examples), graph, notes=tuple(notes))


def build_example(recorder: Recorder | None, parts: "ForwardTrace", title: str) -> Example:
    """Example of one answer: its parts, behind the attentions inside the encoder that were recorded."""
    attentions = [
        AttentionMap(
            name,
            attention.query,
            attention.key,
            attention.weights.float().cpu().numpy().astype(np.float32),
            layer,
            source=ITSELF,
        )
        for layer, (name, attention) in enumerate(parts.attentions.items())
    ]
    inner = Example({}, ()) if recorder is None else select_encoder(recorder, parts)
    axes = {**inner.axes, **parts.axes}
    return Example(axes, (*inner.attentions, *attentions), parts.choices, title=title)


def select_encoder(recorder: Recorder, parts: "ForwardTrace") -> Example:
    """Attentions inside the encoder, where it was called once."""
    recorded = recorder.examples()
    if len(recorded) != 1:
        return Example({}, ())
    [example] = recorded
    attentions = tuple(
        _placed(attention_map, parts)
        for attention_map in example.attentions
        if attention_map.name not in parts.attentions and _encodes(attention_map.name)
    )
    used = {name for attention_map in attentions for name in (attention_map.query, attention_map.key)}
    return replace(example, axes={name: axis for name, axis in example.axes.items() if name in used}, attentions=attentions)


def _encodes(name: str) -> bool:
    return name.split(".", 1)[0] in ("encoder", "picture", "pictures", QUESTION)


def _placed(attention_map: AttentionMap, parts: "ForwardTrace") -> AttentionMap:
    """Axes of an attention map: positions of the picture attend to one another, and words to those of the question."""
    name = QUESTION if attention_map.name.split(".", 1)[0] == QUESTION else PICTURE
    axis = parts.axes.get(name)
    if axis is None or attention_map.weights is None or attention_map.weights.shape[1:] != (len(axis),) * 2:
        return attention_map
    return replace(attention_map, query=name, key=name)
