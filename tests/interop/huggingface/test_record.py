"""`regard.record` of models of transformers: what eager says of the same tokens, with axes from tokenizer and processor."""

import numpy as np
import pytest
import torch
import transformers

import regard
import regard.huggingface
from regard.data.axis import Audio, Image, Text
from regard.viewer.record.external.product import Product

from . import zoo

assert regard.huggingface.NAME == "regard"
GENERATE = {"max_new_tokens": 5, "do_sample": False, "disable_compile": True}


class Letters:
    """As much of a tokenizer as axes need: a token is a letter."""

    all_special_ids = (0, 1, 2)
    eos_token_id, bos_token_id, pad_token_id = 2, 0, 1

    def convert_ids_to_tokens(self, number):
        return f"<{number}>" if number < 3 else chr(0x41 + number)

    def decode(self, ids, **_):
        return "".join(self.convert_ids_to_tokens(number) for number in ids)


@pytest.mark.parametrize("implementation", ["regard", "sdpa"])
def test_what_a_model_answers_stays_what_it_is(implementation):
    model = zoo.build("mistral", implementation)
    given = zoo.inputs(model)
    with torch.no_grad():
        expected, answer = model(**given).logits, model.generate(**given, **GENERATE)
        with regard.record(model) as rec:
            assert torch.equal(model(**given).logits, expected)
            assert torch.equal(model.generate(**given, **GENERATE), answer)
    assert [len(run.passes) for run in rec.runs] == [1, 5]
    assert len(rec.trace().examples) == 4


@pytest.mark.parametrize("model_type", ["mistral", "gpt_oss"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_generated_text_looks_where_a_pass_over_it_looks(model_type, beams):
    model, eager = zoo.build(model_type, "regard"), zoo.build(model_type, "eager")
    given = zoo.inputs(model)
    with regard.record(model) as rec:
        answers = model.generate(**given, num_beams=beams, **GENERATE)
    trace = rec.trace(tokenizer=Letters())
    assert len(trace.examples) == 2
    for number, answer in enumerate(answers):
        prompt = given["input_ids"][number][given["attention_mask"][number].bool()]
        with torch.no_grad():
            forced = eager(torch.cat([prompt, answer[9:-1]])[None], output_attentions=True).attentions
        tokens = trace.examples[number].axes["tokens"]
        length = len(tokens)
        assert tokens.labels[: len(prompt)] == [chr(0x41 + token) for token in prompt.tolist()]
        for layer, weights in enumerate(forced):
            attention = trace.attention(f"model.layers.{layer}.self_attn", number)
            np.testing.assert_allclose(attention.weights, weights[0, :, :length, :length].numpy(), atol=1e-3)
            assert (attention.query, attention.key) == ("tokens", "tokens")
            assert not np.triu(attention.allowed, 1).any()


@pytest.mark.parametrize("beams", [1, 3])
def test_an_encoder_decoder_has_source_target_and_written(beams):
    model, eager = zoo.build("bart", "regard"), zoo.build("bart", "eager")
    given = zoo.inputs(model)
    del given["decoder_input_ids"]
    with regard.record(model) as rec:
        answers = model.generate(**given, num_beams=beams, decoder_start_token_id=2, **GENERATE)
    trace = rec.trace(tokenizer=Letters())
    for number, answer in enumerate(answers):
        source = given["input_ids"][number][given["attention_mask"][number].bool()]
        with torch.no_grad():
            forced = eager(source[None], decoder_input_ids=answer[None, :-1], output_attentions=True)
        example = trace.examples[number]
        length = len(example.axes["target"])
        assert example.axes["source"].labels == [chr(0x41 + token) for token in source.tolist()]
        cross = trace.attention("model.decoder.layers.1.encoder_attn", number)
        own = trace.attention("model.decoder.layers.0.self_attn", number)
        assert (cross.query, cross.key, own.query, own.key) == ("target", "source", "target", "written")
        np.testing.assert_allclose(cross.weights, forced.cross_attentions[1][0, :, :length].numpy(), atol=1e-3)
        np.testing.assert_allclose(own.weights, forced.decoder_attentions[0][0, :, :length, :length].numpy(), atol=1e-3)
        encoder = trace.attention("model.encoder.layers.0.self_attn", number)
        np.testing.assert_allclose(encoder.weights, forced.encoder_attentions[0][0].numpy(), atol=1e-3)


def test_rows_and_statistics_form_no_matrix(monkeypatch, tmp_path):
    model, eager = zoo.build("llama", "regard"), zoo.build("llama", "eager")
    given = zoo.inputs(model, batch=1)
    monkeypatch.setattr(Product, "all_weights", None)
    with regard.record(model, rows=[-1], statistics=("entropy", "argmax", "received")) as rec:
        answer = model.generate(**given, **GENERATE)
    trace = rec.trace(tokenizer=Letters())
    with torch.no_grad():
        weights = eager(answer[:, :-1], output_attentions=True).attentions[1][0].numpy()
    attention = trace.attention("model.layers.1.self_attn")
    assert attention.rows == (8, 9, 10, 11, 12)  # the last of the prompt, then one a token
    np.testing.assert_allclose(attention.weights, weights[:, 8:], atol=1e-3)
    assert attention.statistics["argmax"].tolist() == weights.argmax(-1).tolist()
    np.testing.assert_allclose(attention.statistics["received"], weights.sum(1), atol=1e-3)
    np.testing.assert_allclose(
        attention.statistics["entropy"],
        -np.where(weights > 0, weights * np.log(np.maximum(weights, 1e-30)), 0).sum(-1),
        atol=1e-3,
    )
    trace.save(tmp_path / "t.attn.safetensors")
    assert regard.Trace.load(tmp_path / "t.attn.safetensors").attention().rows == attention.rows


def test_the_network_has_its_attentions_as_boxes():
    model = zoo.build("bert", "regard")
    with torch.no_grad(), regard.record(model) as rec:
        model(**zoo.inputs(model))
    nodes = {node.id: node for node in rec.trace().graph.nodes}
    assert nodes["bert.encoder.layer.0.attention.self"].kind == "attention"
    assert nodes["bert.encoder.layer.0.attention.self"].about["kernel"] == "sdpa"
    assert "input_ids" in nodes


def test_patches_of_a_picture_lie_over_it():
    model = zoo.build("vit", "regard")
    picture = torch.rand(2, 3, 32, 32)
    processor = transformers.ViTImageProcessor(image_mean=[0.5] * 3, image_std=[0.5] * 3)
    with torch.no_grad(), regard.record(model) as rec:
        model(pixel_values=picture * 2 - 1)
    axis = rec.trace(processor=processor).examples[1].axes["patches"]
    assert isinstance(axis, Image)
    assert (axis.grid, axis.size, axis.prefix) == ((4, 4), (32, 32), ("CLS",))
    np.testing.assert_allclose(axis.pixels, picture[1].permute(1, 2, 0).numpy() * 255, atol=0.51)


def test_frames_of_sound_have_their_seconds():
    model = zoo.build("whisper", "regard")
    features = torch.randn(1, model.config.num_mel_bins, 2 * model.config.max_source_positions)
    with regard.record(model) as rec:
        model.generate(features, num_beams=2, decoder_start_token_id=2, **GENERATE)
    axis = rec.trace().examples[0].axes["source"]
    assert isinstance(axis, Audio)
    assert (len(axis), axis.seconds_per_step, axis.spectrogram.shape) == (128, 0.02, (16, 256))
    model = zoo.build("wav2vec2", "regard")
    with torch.no_grad(), regard.record(model) as rec:
        model(torch.randn(1, 4000))
    axis = rec.trace().examples[0].axes["frames"]
    assert isinstance(axis, Audio)
    assert axis.rate == 16000
    assert axis.seconds_per_step * len(axis) == pytest.approx(0.25)


def test_two_towers_have_two_axes():
    config = zoo.shrink(transformers.CLIPConfig())
    config._attn_implementation = "regard"
    model = transformers.CLIPModel(config).eval()
    ids = torch.randint(3, 90, (2, 7))
    with torch.no_grad(), regard.record(model) as rec:
        model(input_ids=ids, pixel_values=torch.randn(2, 3, 32, 32))
    example = rec.trace(tokenizer=Letters()).examples[0]
    assert isinstance(example.axes["tokens"], Text)
    assert isinstance(example.axes["patches"], Image)
    assert {(one.query, one.key) for one in example.attentions} == {("tokens", "tokens"), ("patches", "patches")}


def test_a_model_that_nobody_can_listen_to_says_what_to_do():
    model = zoo.build("bert", "eager")
    with torch.no_grad(), regard.record(model) as rec:
        model(**zoo.inputs(model))
    with pytest.raises(
        ValueError, match=r'loaded with attn_implementation="eager", which nobody can listen to: import regard'
    ):
        rec.trace()


def test_gradients_reach_the_weights_of_a_model():
    model = zoo.build("llama", "regard")
    given = zoo.inputs(model, batch=1)
    with regard.record(model, gradients=True) as rec:
        model(**given).logits[0, -1].max().backward()
    trace = rec.trace(tokenizer=Letters())
    product = trace.attention("model.layers.0.self_attn × gradient")
    eager = zoo.build("llama", "eager")
    output = eager(**given, output_attentions=True)
    gradients = torch.autograd.grad(output.logits[0, -1].max(), output.attentions)
    products = [(weights * one)[0].detach().numpy() for weights, one in zip(output.attentions, gradients, strict=True)]
    largest = max(np.abs(one).max() for one in products)  # of all layers
    np.testing.assert_allclose(product.weights, products[0] / largest, atol=2e-3)


@pytest.mark.parametrize("model_type", ["llama", "bert", "bart", "vit"])
def test_the_faithfulness_check_is_stored_in_the_trace(model_type, tmp_path):
    model = zoo.build(model_type, "regard")
    given = zoo.inputs(model, length=12)
    trace = regard.huggingface.check_faithfulness(model, given, count=2, trials=3, tokenizer=Letters())
    for example in trace.examples:
        check = example.faithfulness
        assert check.axis == {"llama": "tokens", "bert": "tokens", "bart": "source", "vit": "patches"}[model_type]
        assert len(check.keys) == 2
        assert check.largest > 0
        assert check.random > 0
    assert (
        regard.Trace.load(trace.save(tmp_path / "t.attn.safetensors")).examples[0].faithfulness
        == trace.examples[0].faithfulness
    )
