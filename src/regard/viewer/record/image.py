"""What a model saw as a trace: its network, and where each of its attentions looked, laid over the picture."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.data.image.types import ImageExample
from regard.viewer.record import Recorder, record
from regard.viewer.source import ITSELF
from regard.viewer.trace import AttentionMap, Example, Graph, Trace

if TYPE_CHECKING:
    from regard.inference.forward_predictor import Seeing, Shown

PICTURE = "picture"
"""What the axis of the places of a picture is called."""
QUESTION = "question"
"""What that of the words of a question is called, and the part of a model that reads them."""


def trace(seeing: "Seeing", inputs: Sequence[str]) -> Trace:
    """Where a model looks while it answers each input."""
    if not inputs or isinstance(inputs, str):
        raise ValueError(f"trace needs a list of inputs, got {inputs!r}; one input is [input]")
    found, graph = list[Example](), Graph()
    with nullcontext() if seeing.recorder is None else seeing.recorder.pause():
        for encoded in seeing.encoded(inputs):
            rec = record(seeing.model, graph=not found)
            [(_, batch)] = seeing.batches([encoded])
            with rec:
                output = seeing.asked(batch, weights=True)
            graph = graph if found else rec.graph()
            heard = rec if batch.frames is None else None  # frames of a clip are read as so many pictures
            found.append(described(heard, seeing.shown(encoded, output), encoded))
    missing = not any(example.attentions for example in found)
    notes = ["This model has no attention, so there is only its network."] * missing
    return Trace(seeing.name, tuple(found), graph, notes=tuple(notes))


def described(rec: Recorder | None, shown: "Shown", encoded: ImageExample) -> Example:
    """One example: what the model says of where it looked, behind what attentions inside its encoder were heard to do."""
    attentions = [
        AttentionMap(
            name, glance.query, glance.key, glance.weights.float().cpu().numpy().astype(np.float32), layer, source=ITSELF
        )
        for layer, (name, glance) in enumerate(shown.looks.items())
    ]
    inner = Example({}, ()) if rec is None else inside(rec, shown)
    axes = {**inner.axes, **shown.axes}
    return Example(axes, (*inner.attentions, *attentions), shown.steps, title=str(encoded.record.source))


def inside(rec: Recorder, shown: "Shown") -> Example:
    """What attentions inside the encoder did, where one picture was all that was read."""
    heard = rec.examples()
    if len(heard) != 1:
        return Example({}, ())
    [example] = heard
    attentions = tuple(
        _placed(attention_map, shown)
        for attention_map in example.attentions
        if attention_map.name not in shown.looks and _encodes(attention_map.name)
    )
    used = {name for attention_map in attentions for name in (attention_map.query, attention_map.key)}
    return replace(example, axes={name: axis for name, axis in example.axes.items() if name in used}, attentions=attentions)


def _encodes(name: str) -> bool:
    return name.split(".", 1)[0] in ("encoder", "picture", "pictures", QUESTION)


def _placed(attention_map: AttentionMap, shown: "Shown") -> AttentionMap:
    """Where places look at places, they are those of the picture, and words that look at words those of the question."""
    name = QUESTION if attention_map.name.split(".", 1)[0] == QUESTION else PICTURE
    axis = shown.axes.get(name)
    if axis is None or attention_map.weights is None or attention_map.weights.shape[1:] != (len(axis),) * 2:
        return attention_map
    return replace(attention_map, query=name, key=name)
