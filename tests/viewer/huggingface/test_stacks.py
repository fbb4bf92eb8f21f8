"""Which stacks of attentions an output has, and how each becomes looks."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.data.axis import Index
from regard.viewer.huggingface.stacks import Draft, stacks_of
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Trace

from .asking import ASKED, inputs


def test_an_encoder_alone_sees_everything(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry")
    with torch.no_grad():
        output = model("Bert")(**source, output_attentions=True)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    assert [
        (attention_map.name, attention_map.query, attention_map.key) for attention_map in trace.example().attentions
    ] == [
        ("attention.0", "tokens", "tokens"),
        ("attention.1", "tokens", "tokens"),
    ]
    assert trace.attention().allowed is None


@pytest.mark.parametrize("ask", ["forward", "generate"])
def test_a_model_that_returns_no_weights_is_said_how_to_load(model, ask):
    network = model("Bart")
    network.set_attn_implementation("sdpa")
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        output = network(input_ids=ids) if ask == "forward" else network.generate(ids, max_new_tokens=2, **ASKED)
    with pytest.raises(
        TraceError,
        match="holds no attention weights: load it with attn_implementation='eager' and ask with output_attentions=True",
    ):
        Trace.from_huggingface(output)


def test_a_stack_of_nothing_is_none():
    own = (torch.ones(1, 1, 1, 1),)
    found = stacks_of(
        SimpleNamespace(decoder_attentions=(), attentions=own, encoder_attentions=((),), cross_attentions=(None,))
    )
    assert (found.encoder, found.own, found.cross, found.single) == (None, own, None, True)
    assert not stacks_of(SimpleNamespace(decoder_attentions=own, cross_attentions=own)).single


def test_a_stack_in_which_none_looks_ahead_is_causal_in_every_layer():
    triangle, square = (
        np.tri(2, dtype=np.float32)[None] / np.array([[1], [2]], np.float32),
        np.full((1, 2, 2), 0.5, np.float32),
    )
    for layers, allowed in (([triangle, triangle], np.tri(2, dtype=bool)), ([triangle, square], None)):
        draft = Draft(True)
        draft.single(layers, Index(2), [0, 1])
        for number, attention_map in enumerate(draft.attentions):
            assert (attention_map.name, attention_map.layer) == (f"attention.{number}", number)
            np.testing.assert_array_equal(attention_map.allowed, allowed)


def test_padding_is_cut_from_rows_and_columns():
    weights = np.arange(9, dtype=np.float32).reshape(1, 3, 3)
    draft = Draft(False)
    draft.encoder([weights], Index(2), [0, 2])
    draft.decoder(None, Index(1), Index(1), [1])
    draft.cross([weights], [1], [0, 2])
    assert [attention_map.weights.tolist() for attention_map in draft.attentions] == [[[[0, 2], [6, 8]]], [[[3, 5]]]]
    assert list(draft.axes) == ["source", "target"]  # nothing looks at what was written
    assert draft.attentions[0].sums_to_one is False
