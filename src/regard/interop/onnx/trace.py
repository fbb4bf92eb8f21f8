"""Attention trace of exported graphs: the weights of the decoder, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.attention.types import Attended
from regard.data.batch import shifted
from regard.data.image.types import ImageExample
from regard.data.text.codec import Example as Encoded
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.constraints.spec import ConstraintSpec
from regard.errors import RefusedError
from regard.inference.predictor import Input
from regard.inference.sequence_trace import encode_answers
from regard.viewer import source
from regard.viewer.record.predicted import beams, choices
from regard.viewer.record.spelling import Words, written
from regard.viewer.trace import AttentionMap, Example, Trace

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor

NOTE = "Exported graphs have the attention of the decoder; a trace of the run has encoder and network too."


def trace(
    trained: "SequencePredictor",
    inputs: Sequence[Input],
    *,
    beam: int | None = None,
    targets: Sequence[str] | None = None,
    scores: bool = False,
    constraints: Sequence[ConstraintSpec] | None = None,
) -> Trace:
    """Attention of the graphs while they answer each input under its constraints, or while they write the `targets`."""
    if scores:
        raise RefusedError(
            "exported graphs give the weights of their attentions and not the scores before them: leave scores out, or take "
            "the run that they were made from"
        )
    examples, words = list[Example](), Words(trained.codec)
    for encoded, tree in encode_answers(trained, inputs, beam, targets, constraints):
        example = write(trained, words, encoded)
        examples.append(example if tree is None else replace(example, beams=beams(tree, words, example)))
    return Trace(trained.name, tuple(examples), notes=(NOTE,))


def write(trained: "SequencePredictor", words: Words, encoded: Encoded | ImageExample) -> Example:
    """Example of a known target: axes, attention maps and steps under teacher forcing."""
    assert encoded.target is not None, "what is written is known"
    step = trained.model(trained.codec.collate([encoded]), shifted(torch.tensor([encoded.target])), weights=True)
    source_, target = words.read(encoded), words.answered(encoded.target)
    axes = {"source": source_, "target": target, "written": written(target)}
    maps = attentions(step.attended)
    used = {
        name: axis
        for name, axis in axes.items()
        if name != "written" or any(attention_map.key == name for attention_map in maps)
    }
    steps = choices(words, encoded.target, step.output[0])
    return Example(used, maps, tuple(steps), title=encoded.record.source)


def attentions(attended: Mapping[str, Attended]) -> tuple[AttentionMap, ...]:
    """Attention maps of one row of the batch; self-attention of the decoder is causal."""
    examples, layers = list[AttentionMap](), dict[str, int]()
    for name, layer_attended in attended.items():
        assert layer_attended.weights is not None, "they were asked for"
        weights, key = layer_attended.weights[0].numpy(), "source" if is_cross_attention(name) else "written"
        layer = layers[key] = layers.get(key, -1) + 1
        attention_map = AttentionMap(name, "target", key, weights, layer, source=source.ITSELF)
        whole = bool(np.allclose(weights.sum(-1), 1, atol=1e-3))
        allowed = None if is_cross_attention(name) else np.tri(*weights.shape[1:]) > 0
        examples.append(replace(attention_map, allowed=allowed, sums_to_one=whole))
    return tuple(examples)
