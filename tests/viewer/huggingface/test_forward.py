"""A forward pass: what the places of a decoder write, and what they read, one place on."""

import numpy as np
import pytest
import torch
import transformers

from regard.data.axis import Image
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Trace

from ...interop.huggingface import zoo
from .asking import ASKED, inputs


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


def test_attentions_alone_are_read_as_layers_of_a_batch(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry", "Jerry chases Tom")
    output = model("Bert")(**source, output_attentions=True)
    alone = Trace.from_huggingface(output.attentions, tokenizer, source=source)
    whole = Trace.from_huggingface(output, tokenizer, source=source)
    assert len(alone.examples) == 2
    for one, other in zip(alone.examples[1].attentions, whole.examples[1].attentions, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        (
            (torch.ones(4, 5, 5) / 5,),
            r"layer 0 of the attentions needs to be \(batch, heads, queries, keys\).* got \(4, 5, 5\)",
        ),
        ((torch.ones(1, 2, 5, 5) / 5, torch.ones(9, 2, 5, 5) / 5), "layer 1 of the attentions has 9 rows and the first 1"),
        ((), "the attentions hold no layer: load it with attn_implementation='eager'"),
        ([3.0], r"layer 0 of the attentions needs .* got float"),
    ],
)
def test_a_batch_is_never_read_as_heads(layers, text):
    if layers == ():
        layers = []
    with pytest.raises(TraceError, match=text):
        Trace.from_huggingface(layers)


def test_a_stack_that_never_looks_ahead_is_said_to_be_causal(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry")
    causal = Trace.from_huggingface(model("GPT2")(**source, output_attentions=True), tokenizer, source=source)
    assert "No place ever looks at a later one" in causal.notes[0]
    assert causal.attention().allowed is not None
    assert not Trace.from_huggingface(model("Bert")(**source, output_attentions=True), tokenizer, source=source).notes


def clip():
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    text, vision = sizes | {"vocab_size": 280, "eos_token_id": 2}, sizes | {"image_size": 16, "patch_size": 4}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, attn_implementation="eager")
    return transformers.CLIPModel(config).eval()


@pytest.mark.parametrize("pictures", [2, 1])
def test_a_model_of_two_towers_has_tokens_and_patches(pictures, tokenizer):
    source = {**inputs(tokenizer, "Tom chases Jerry", "Jerry"), "pixel_values": torch.rand(pictures, 3, 16, 16)}
    trace = Trace.from_huggingface(clip()(**source, output_attentions=True), tokenizer, source=source)
    assert len(trace.examples) == (2 if pictures == 2 else 3)
    first, last = trace.examples[0], trace.examples[-1]
    assert first.axes["tokens"].labels[0].strip() == "Tom"
    assert isinstance(last.axes["patches"], Image)
    assert last.axes["patches"].grid == (4, 4)
    assert {one.name for one in last.attentions} >= {"vision.0", "vision.1"}


def test_what_a_processor_prepared_is_a_picture_or_sound(model):
    network = zoo.build("vit", "eager")
    picture = {"pixel_values": torch.rand(1, 3, 32, 32)}
    axis = Trace.from_huggingface(network(**picture, output_attentions=True), source=picture).example().axes["tokens"]
    assert (axis.kind, axis.prefix, axis.pixels.shape) == ("image", ("CLS",), (32, 32, 3))
    network = zoo.build("wav2vec2", "eager")
    sound = {"input_values": torch.randn(1, 4000)}
    axis = Trace.from_huggingface(network(**sound, output_attentions=True), source=sound).example().axes["tokens"]
    assert (axis.kind, axis.rate, len(axis.sound)) == ("audio", 16000, 4000)
    with pytest.raises(
        TraceError, match="source: needs input_ids or pixel_values, input_features, input_values of a tokenizer"
    ):
        Trace.from_huggingface(network(**sound, output_attentions=True), source={"values": torch.randn(1, 4000)})


def test_whispers_beams_are_refused_since_its_rows_are_lost():
    network = zoo.build("whisper", "eager")
    features = torch.randn(2, network.config.num_mel_bins, 256)
    options = {"num_beams": 2, "max_new_tokens": 4, "decoder_start_token_id": 2, **ASKED}
    with pytest.raises(
        TraceError, match=r"come from row \d of the beam search and the attentions have 2 rows, as Whisper's"
    ):
        Trace.from_huggingface(network.generate(features, **options))
