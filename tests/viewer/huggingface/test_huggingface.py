"""What transformers models return, as traces: beams re-aligned, padding gone, tokens shown as their text."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.viewer.axes import Image, Index
from regard.viewer.file import load, save
from regard.viewer.file.check import TraceError
from regard.viewer.trace import Trace

ASKED = {"return_dict_in_generate": True, "output_attentions": True, "output_scores": True}


def inputs(tokenizer, *texts):
    return tokenizer(list(texts), return_tensors="pt", padding=True)


def forced(model, source, sequence):
    """Attentions of a pass in which the decoder is given the answer: decoder self, cross, encoder."""
    with torch.no_grad():
        output = model(**source, decoder_input_ids=sequence[None], output_attentions=True)
    return {
        "decoder.{}.self": output.decoder_attentions,
        "decoder.{}.cross": output.cross_attentions,
        "encoder.{}.self": output.encoder_attentions,
    }


def row(source, number):
    """One text of a batch, without its padding."""
    keep = source["attention_mask"][number].bool()
    return {"input_ids": source["input_ids"][number][keep][None]}


@pytest.mark.parametrize("kind", ["Bart", "Marian", "T5"])
@pytest.mark.parametrize("beams", [1, 4])
def test_an_answer_looked_where_a_forced_pass_over_it_looks(model, tokenizer, kind, beams):
    swapped = 0
    for seed in range(2):
        network = model(kind, seed)
        source = inputs(tokenizer, "Tom chases Jerry", "汤姆 Tom")
        output = network.generate(**source, num_beams=beams, num_return_sequences=min(beams, 2), max_new_tokens=9, **ASKED)
        trace = Trace.from_huggingface(output, tokenizer, source=source)
        each = len(trace.examples) // 2
        for number, example in enumerate(trace.examples):
            length = len(example.axes["written"])
            truth = forced(network, row(source, number // each), output.sequences[number, :length])
            for name, layers in truth.items():
                for layer, weights in enumerate(layers):
                    found = trace.look(name.format(layer), number).weights
                    np.testing.assert_allclose(found, weights[0], atol=1e-4)
        if beams > 1:
            swapped += sum(len(set(rows[rows >= 0].tolist())) > 1 for rows in output.beam_indices)
    assert swapped > 0 or beams == 1


def test_without_a_cache_every_step_returns_all_queries_and_the_last_is_taken(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry")
    found = [
        Trace.from_huggingface(
            model("Bart").generate(**source, num_beams=3, max_new_tokens=6, use_cache=cache, **ASKED), tokenizer
        )
        for cache in (True, False)
    ]
    for one, other in zip(*(trace.example().looks for trace in found), strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


def test_a_prompt_of_several_tokens_gives_the_first_step_several_queries(model, tokenizer):
    network, source = model("Bart"), inputs(tokenizer, "Tom chases")
    prompt = torch.tensor([[2, 9, 17]])
    output = network.generate(**source, decoder_input_ids=prompt, max_new_tokens=5, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    truth = forced(network, row(source, 0), output.sequences[0, : len(trace.example().axes["written"])])
    np.testing.assert_allclose(trace.look("decoder.1.cross").weights, truth["decoder.{}.cross"][1][0], atol=1e-4)
    np.testing.assert_allclose(trace.look("decoder.0.self").weights, truth["decoder.{}.self"][0][0], atol=1e-4)
    assert trace.example().steps[0].query == 2  # the first two places are the prompt's


def test_steps_have_the_models_own_probabilities(model, tokenizer):
    network, source = model("Bart"), inputs(tokenizer, "Tom")
    output = network.generate(**source, max_new_tokens=5, **ASKED)
    example = Trace.from_huggingface(output, tokenizer, source=source, candidates=3).example()
    with torch.no_grad():
        logits = network(**source, decoder_input_ids=output.sequences[:, :-1]).logits[0].log_softmax(-1)
    for place, step in enumerate(example.steps):
        assert step.query == place
        assert step.token == example.axes["target"].labels[place]
        assert step.logprob == pytest.approx(float(logits[place, output.sequences[0, place + 1]]), abs=1e-4)
        assert [score for _, score in step.candidates] == pytest.approx(logits[place].topk(3).values.tolist(), abs=1e-4)
        assert step.candidates[0][1] == step.logprob  # greedy


@pytest.mark.parametrize("seed", range(4))
def test_the_whole_tree_of_beams_is_found_again(model, tokenizer, seed):
    network, source = model("Marian", seed, vocabulary=40), {"input_ids": torch.tensor([[5, 9, 7], [8, 3, 4]])}
    output = network.generate(**source, num_beams=3, max_new_tokens=8, length_penalty=0.0, early_stopping=True, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    assert trace.notes == ()
    for number, example in enumerate(trace.examples):
        beams, answer = example.beams, []
        step, place = beams.best
        assert beams.scores[step, place] == pytest.approx(float(output.sequences_scores[number]), abs=1e-4)
        while step >= 0:
            answer.append(beams.tokens[step][place])
            looked = beams.weights[step, place]
            wanted = trace.look("decoder.1.cross", number).weights[:, step].mean(0)
            np.testing.assert_allclose(looked, wanted, atol=1e-3)
            step, place = step - 1, beams.parents[step, place]
        assert len(answer) == len(example.steps)
        for step, place in np.argwhere(beams.parents >= 0):  # a row adds the log-probability of its token to its parent's
            before = beams.scores[step - 1, beams.parents[step, place]] if step else 0
            line = output.scores[step][3 * number + beams.parents[step, place]]
            assert min(abs(line - (beams.scores[step, place] - before))) < 1e-4


def test_hypotheses_that_end_are_marked_as_ended(model, tokenizer):
    endings = 0
    for seed in range(4):
        network = model("Bart", seed, vocabulary=12, spread=0.3)
        output = network.generate(torch.tensor([[5, 9, 7]]), num_beams=4, max_new_tokens=8, **ASKED)
        beams = Trace.from_huggingface(output, tokenizer).example().beams
        assert {beams.tokens[step][place] for step, place in np.argwhere(beams.ended)} <= {"</s>"}
        endings += int(beams.ended.sum())
        assert beams.ended[beams.best] == (output.sequences[0, -1] == 2)
    assert endings > 0


def test_a_tree_that_cannot_be_found_again_is_left_out_and_said(model, tokenizer):
    source = inputs(tokenizer, "Tom")
    output = model("Bart").generate(**source, num_beams=3, max_new_tokens=4, **ASKED)
    for changed in (dict(output, scores=None), dict(output, scores=tuple(-score for score in output.scores))):
        trace = Trace.from_huggingface(SimpleNamespace(**changed), tokenizer, source=source)
        assert trace.example().beams is None
        assert trace.notes == ("the tree of the beams needs output_scores=True, a tokenizer and a search without sampling",)
    assert Trace.from_huggingface(SimpleNamespace(**dict(output, scores=None)), tokenizer).example().steps == ()


def test_without_a_tokenizer_the_end_of_an_answer_that_was_done_early_is_its_last_token(model):
    for seed in range(6):
        output = model("Bart", seed, vocabulary=12, spread=0.3).generate(
            torch.tensor([[5, 9, 7]]), num_beams=4, max_new_tokens=8, **ASKED
        )
        example = Trace.from_huggingface(output).example()
        early = len(example.steps) < len(output.scores)
        assert (example.beams is not None) == early


def test_padding_of_sources_and_answers_is_gone(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry", "Tom")
    network = model("Bart", 3, spread=0.3)
    network.generation_config.eos_token_id = None
    output = network.generate(**source, max_new_tokens=6, **ASKED)
    output.sequences[1, 3:] = torch.tensor([2, 1, 1, 1])  # as if the second had ended after its third token
    short = Trace.from_huggingface(output, tokenizer, source=source).examples[1]
    assert short.axes["source"].labels == ["Tom"]
    assert short.axes["target"].labels[-1] == "</s>"
    assert [len(short.axes[name]) for name in ("target", "written")] == [3, 3]
    assert [look.weights.shape[1:] for look in short.looks] == [(1, 1)] * 2 + [(3, 3)] * 2 + [(3, 1)] * 2


def test_padding_is_told_by_the_tokenizer_where_there_is_no_mask(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry", "Tom")
    with torch.no_grad():
        output = model("Bart")(**source, output_attentions=True)
    examples = Trace.from_huggingface(output, tokenizer, source=source["input_ids"]).examples
    assert examples[1].axes["source"].labels == ["Tom"]


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
    assert [look.name for look in example.looks] == [f"{part}.{layer}.{what}" for part, what in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")) for layer in (0, 1)]  # fmt: skip
    np.testing.assert_array_equal(trace.look("decoder.0.self").allowed, np.tri(2, dtype=bool))
    assert trace.look("encoder.0.self").allowed is None
    np.testing.assert_array_equal(trace.look("decoder.1.cross").weights, output.cross_attentions[1][0])


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
    assert told[0].looks[-1].weights.shape == (2, 2, 2)
    with pytest.raises(TraceError, match="target: place 0 has the number -100, which is no token; leave it out of the text"):
        Trace.from_huggingface(output, tokenizer, target=torch.tensor([[-100, *words]]))


def test_without_tokens_places_are_numbered(model):
    with torch.no_grad():
        output = model("Bart")(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    axes = Trace.from_huggingface(output).example().axes
    assert all(isinstance(axis, Index) and len(axis) == 3 for axis in axes.values())


def test_an_encoder_alone_sees_everything(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry")
    with torch.no_grad():
        output = model("Bert")(**source, output_attentions=True)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    assert [(look.name, look.query, look.key) for look in trace.example().looks] == [
        ("attention.0", "tokens", "tokens"),
        ("attention.1", "tokens", "tokens"),
    ]
    assert trace.look().allowed is None


def test_a_picture_can_be_the_source(model):
    with torch.no_grad():
        output = model("Bert")(input_ids=torch.tensor([[5, 6, 7, 8, 9]]), output_attentions=True)
    axis = Image((2, 2), (8, 8), prefix=("CLS",))
    assert Trace.from_huggingface(output, source=axis).example().axes["tokens"] is axis
    with pytest.raises(TraceError, match="source has 4 places, and attention saw 5; give what the model was given"):
        Trace.from_huggingface(output, source=Image((2, 2), (8, 8)))
    assert Trace.from_huggingface(output, source=list("abcde")).example().axes["tokens"].labels == list("abcde")


@pytest.mark.parametrize("beams", [1, 3])
def test_a_text_that_is_gone_on_with_looked_where_a_pass_over_it_looks(model, tokenizer, beams):
    network = model("GPT2", 1)
    tokenizer.padding_side = "left"
    source = inputs(tokenizer, "Tom chases Jerry", "Tom")
    tokenizer.padding_side = "right"
    output = network.generate(**source, num_beams=beams, max_new_tokens=6, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    for number, example in enumerate(trace.examples):
        places, padding = len(example.axes["tokens"]), int((source["attention_mask"][number] == 0).sum())
        text = output.sequences[number, padding : padding + places][None]
        with torch.no_grad():
            layers = network(text, output_attentions=True).attentions
        for layer, look in enumerate(example.looks):
            np.testing.assert_allclose(look.weights, layers[layer][0], atol=1e-4)
            np.testing.assert_array_equal(look.allowed, np.tri(places, dtype=bool))
        assert example.axes["tokens"].labels[0] == "Tom"
        assert [step.query for step in example.steps] == list(range(places - len(example.steps), places))
        assert (example.beams is not None) == (beams > 1)
    assert trace.examples[1].steps[0].query == 0  # the prompt is one token


def test_half_precision_comes_through(model, tokenizer):
    source = inputs(tokenizer, "Tom")
    for dtype, found in ((torch.bfloat16, np.float32), (torch.float16, np.float16)):
        with torch.no_grad():
            output = model("Bert").to(dtype)(**source, output_attentions=True)
        assert Trace.from_huggingface(output, tokenizer, source=source).look().weights.dtype == found


def test_a_trace_of_an_answer_can_be_stored(model, tokenizer, tmp_path):
    source = inputs(tokenizer, "Tom chases 汤姆")
    output = model("Bart").generate(**source, num_beams=3, max_new_tokens=6, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    again = load(save(trace, tmp_path / "t.attn.safetensors"))
    np.testing.assert_array_equal(again.example().beams.weights, trace.example().beams.weights)
    assert again.example().steps == trace.example().steps


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


def test_a_model_in_training_mode_is_said_to_be(model):
    network = model("Bart", attention_dropout=0.5).train()
    output = network(input_ids=torch.tensor([[5, 6, 7, 8, 9]]), output_attentions=True)
    with pytest.raises(TraceError, match=r"must sum to 1.*drops weights at random: call model.eval\(\) first"):
        Trace.from_huggingface(output)
    assert Trace.from_huggingface(output, sums_to_one=False).look().sums_to_one is False


def test_other_faults_are_said_as_they_are(model):
    with torch.no_grad():
        output = model("Bert")(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    output.attentions[0][0, 1, 2, 0] = float("nan")
    with pytest.raises(TraceError, match=r"head 1, query 2, key 0: a weight must be a finite number, got nan$"):
        Trace.from_huggingface(output)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (torch.tensor([[5, 6]]), "source has 2 tokens, and attention saw 3 places; give what the model was given"),
        (torch.tensor([[5, 6, 7]] * 2), "source has 2 rows and the model answered for 1; give what the model was given"),
        ("Tom", "source: needs what the tokenizer returned, token numbers, tokens or an axis, got str"),
        ([], "source: needs what the tokenizer returned"),
        ([0.5, 1.5, 2.5], "source: a token is a number or a text, got float"),
    ],
)
def test_a_source_that_does_not_fit_is_named(model, source, said):
    with torch.no_grad():
        output = model("Bert")(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    with pytest.raises(TraceError) as caught:
        Trace.from_huggingface(output, source=source)
    assert said in str(caught.value)
