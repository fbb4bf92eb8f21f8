"""A forward pass: what the places of a decoder write, and what they read, one place on."""

import numpy as np
import pytest
import torch

from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Trace

from .asking import inputs


def test_a_forward_pass_with_labels(model, tokenizer):
    source, labels = inputs(tokenizer, "Tom chases Jerry"), inputs(tokenizer, "Jerry Tom")["input_ids"]
    with torch.no_grad():
        output = model("Marian")(**source, labels=labels, output_attentions=True)
    trace = Trace.from_huggingface(output, tokenizer, source=source, target=labels, languages=("en", "en-GB"), name="marian")
    example = trace.example()
    assert trace.name == "marian"
    assert example.axes["target"].labels == ["Jerry", "Tom"]
    assert example.axes["written"].labels == ["<start>", "Jerry"]
    assert (example.axes["source"].lang, example.axes["target"].lang) == ("en", "en-GB")
    assert [attention_map.name for attention_map in example.attentions] == [f"{part}.{layer}.{what}" for part, what in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")) for layer in (0, 1)]  # fmt: skip
    np.testing.assert_array_equal(trace.attention("decoder.0.self").allowed, np.tri(2, dtype=bool))
    assert trace.attention("encoder.0.self").allowed is None
    np.testing.assert_array_equal(trace.attention("decoder.1.cross").weights, output.cross_attentions[1][0])


def test_a_forward_pass_with_what_the_decoder_read(model, tokenizer):
    source, read = inputs(tokenizer, "Tom"), torch.tensor([[2, *inputs(tokenizer, "Jerry Tom")["input_ids"][0]]])
    with torch.no_grad():
        output = model("Bart")(**source, decoder_input_ids=read, output_attentions=True)
    axes = Trace.from_huggingface(output, tokenizer, source=source, written=read).example().axes
    assert axes["written"].labels == ["</s>", "Jerry", "Tom"]
    assert axes["target"].labels == ["Jerry", "Tom", "<next>"]
    assert (axes["written"].special, axes["target"].special) == ((0,), (2,))
    with pytest.raises(TraceError, match="target and written are the same tokens, one place on: give one of them"):
        Trace.from_huggingface(output, tokenizer, source=source, written=read, target=read)


def test_padding_behind_labels_is_gone_and_in_front_of_what_a_decoder_reads_it_is_a_token(model, tokenizer):
    words = inputs(tokenizer, "Jerry Tom")["input_ids"][0].tolist()
    labels, read = torch.tensor([[*words, -100]]), torch.tensor([[1, *words]])
    with torch.no_grad():
        output = model("T5")(input_ids=torch.tensor([[5, 6]]), decoder_input_ids=read, output_attentions=True)
    told = [
        Trace.from_huggingface(output, tokenizer, **{name: ids}).example()
        for name, ids in (("target", labels), ("written", read))
    ]
    assert [example.axes["written"].labels for example in told] == [["<start>", "Jerry"], ["<pad>", "Jerry", "Tom"]]
    assert told[0].attentions[-1].weights.shape == (2, 2, 2)
    with pytest.raises(TraceError, match="target: place 0 has the number -100, which is no token; leave it out of the text"):
        Trace.from_huggingface(output, tokenizer, target=torch.tensor([[-100, *words]]))
