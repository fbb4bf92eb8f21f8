import dataclasses
import os
from functools import cache

import numpy as np
import pytest
import torch

import regard
from regard import tasks
from regard.config import AttentionPart, Data, Model, Search
from regard.data.batch import pad
from regard.data.table import Record
from regard.decoding import rate
from regard.errors import ConfigError
from regard.inference.sequence_predictor import SequencePredictor
from regard.tasks.translate import Config
from regard.viewer.io.check import check

TEXTS = ["Tom chases Jerry", "the big dog likes a small cat"]
KINDS = {
    "recurrent": {"order": "bahdanau"},
    "convolution": {"encoder": "convolution", "decoder": "convolution", "layers": 2},
    "transformer": {"encoder": "transformer", "decoder": "transformer", "layers": 2, "heads": 2},
}


@cache
def codec(tokens):
    data = Data(samples=60, tokenizer=tokens, vocab_size=300)
    return tasks.experiment("translate", Config(data=data, model=Model(hidden_size=4)))[0].codec


def trained(name="additive", tokens="words", **options):
    """A model that has learned nothing, which is what makes its searches wander."""
    torch.manual_seed(0)
    model = Model(**{"hidden_size": 16, **options}, attention=AttentionPart(name=name, heads=2))
    config = dataclasses.replace(Config(model=model), search=Search(max_length=6))
    network = tasks.build(config, codec(tokens))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return SequencePredictor(tasks.bind("translate"), config, codec(tokens), network)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_of_every_kind_of_model_says_what_predict_says(kind):
    name = "transformer" if kind == "transformer" else "additive"
    model = trained(name, **KINDS[kind])
    for beam in (1, 3):
        trace = model.trace(TEXTS, beam=beam)
        check(trace)
        answers = [each.text for each in model.predict(TEXTS, beam=beam)]
        assert [example.axes["target"].text for example in trace.examples] == answers
        for example in trace.examples:
            assert {attention_map.name for attention_map in example.attentions} == set(model.model.attentions())
            assert len(example.steps) == len(example.axes["target"])
            assert (example.beams is None) == (beam == 1)
    assert [example.title for example in trace.examples] == TEXTS
    assert trace.name == "translate"
    assert trace.notes[0].startswith("Recording took")
    ids = {node.id for node in trace.graph.nodes if node.kind == "attention"}
    assert ids == set(model.model.attentions())


@pytest.mark.parametrize("mechanism", ["none", *regard.registry.names("mechanisms"), "additive+hard", "additive+marginal"])
def test_every_mechanism_has_a_trace_and_so_has_none_at_all(mechanism):
    model = trained(mechanism)
    trace = model.trace(TEXTS[:1], beam=2)
    check(trace)
    [example] = trace.examples
    if mechanism == "none":
        assert example.attentions == ()
        assert set(example.axes) == {"source", "target"}
        assert example.steps
        assert example.beams.weights is None
        assert {"encoder.layers", "decoder.output"} <= {node.id for node in trace.graph.nodes}
        assert trace.notes[1] == "This model has no attention, so there are only its network and its steps."
        return
    [attention_map] = example.attentions
    assert (attention_map.name, attention_map.query, attention_map.key) == ("decoder.cross", "target", "source")
    assert attention_map.weights.shape[1:] == (len(example.axes["target"]), len(example.axes["source"]))


def test_a_decoder_reads_what_is_written_one_place_behind_what_it_writes():
    model = trained("transformer", **KINDS["transformer"])
    trace = model.trace(TEXTS[:1], targets=["汤姆追逐杰瑞"])
    example = trace.example()
    assert example.axes["target"].labels == ["汤", "姆", "追", "逐", "杰", "瑞", "<eos>"]
    assert example.axes["written"].labels == ["<bos>", "汤", "姆", "追", "逐", "杰", "瑞"]
    groups = {
        attention_map.name: (attention_map.query, attention_map.key, attention_map.layer)
        for attention_map in example.attentions
    }
    assert groups == {
        "encoder.0.self": ("source", "source", 0),
        "encoder.1.self": ("source", "source", 1),
        "decoder.0.self": ("target", "written", 0),
        "decoder.0.cross": ("target", "source", 0),
        "decoder.1.self": ("target", "written", 1),
        "decoder.1.cross": ("target", "source", 1),
    }
    assert (trace.attention("decoder.1.self").allowed == np.tri(7, dtype=bool)).all()
    assert (example.axes["source"].lang, example.axes["target"].lang) == (None, "zh")


def test_steps_know_how_likely_each_token_was_and_what_else_could_have_been():
    model = trained()
    example = model.trace(TEXTS[:1], targets=["汤姆追逐杰瑞"]).example()
    encoded = model.codec.encode(Record(TEXTS[0], "汤姆追逐杰瑞", ""))
    rated = rate(model.model.decoder, model.model.encode(pad([encoded.source])), pad([encoded.target]))
    np.testing.assert_allclose([step.logprob for step in example.steps], rated.logprobs[0], atol=1e-5)
    assert [step.query for step in example.steps] == list(range(7))
    for step in example.steps:
        chances = [logprob for _, logprob in step.candidates]
        assert len(chances) == 8
        assert chances == sorted(chances, reverse=True)
        assert {"<bos>", "<pad>"}.isdisjoint(token for token, _ in step.candidates)
    greedy = model.trace(TEXTS[:1], beam=1).example()
    assert all(step.candidates[0][0] == step.token for step in greedy.steps)


def test_a_tree_of_beams_leads_to_the_answer_and_knows_what_dead_branches_looked_at():
    model = trained()
    example = model.trace(TEXTS[:1], beam=3).example()
    beams, tokens, rows = example.beams, [], []
    step, row = beams.best
    while step >= 0:
        tokens.append(beams.tokens[step][row])
        rows.append(beams.weights[step, row])
        row, step = int(beams.parents[step, row]), step - 1
    assert tokens[::-1] == [step.token for step in example.steps]
    assert beams.name == "decoder.cross"
    np.testing.assert_allclose(rows[::-1], example.attentions[0].weights.mean(0), atol=2e-3)
    alive = beams.parents >= 0
    assert alive.sum() > len(tokens)
    np.testing.assert_allclose(beams.weights.sum(-1, dtype=np.float32)[alive], 1.0, atol=5e-3)
    assert not beams.weights[~alive].any()
    assert (beams.ended <= alive).all()


def test_what_a_recorded_model_predicts_is_traced_search_and_all():
    model = trained()
    plain = model.predict(TEXTS, beam=2)
    with regard.record(model) as rec:
        assert model.predict(TEXTS, beam=2) == plain
    assert model.recorder is None
    trace = rec.trace()
    check(trace)
    assert [example.title for example in trace.examples] == TEXTS
    assert trace.example().beams is not None
    assert trace.graph.nodes
    assert rec.cost.seconds > 0, "the model was asked twice"
    assert (
        rec.cost.bytes
        == sum(attention_map.weights.nbytes for example in trace.examples for attention_map in example.attentions)
        > 0
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_recorded_model_answers_bit_for_bit_by_the_way_that_a_plain_one_takes(kind):
    model = trained("transformer" if kind == "transformer" else "additive", **KINDS[kind])
    for beam in (1, 3):
        plain = model.predict(TEXTS, beam=beam, best=beam)
        with regard.record(model, graph=False):
            assert model.predict(TEXTS, beam=beam, best=beam) == plain


def test_answers_that_nobody_waits_for_leave_nobody_listening():
    model = trained()
    with regard.record(model):
        answers = model.predict_unordered(TEXTS)
        next(answers)
    answers.close()
    assert model.recorder is None
    assert not any(module._forward_hooks or "forward" in module.__dict__ for module in model.model.modules())


def test_what_is_asked_while_answers_are_on_their_way_is_traced_too():
    model = trained()
    with regard.record(model) as rec:
        for _, [answer] in model.predict_unordered(TEXTS[:1]):
            assert model.predict(TEXTS[:1]) == [answer]
        model.predict(TEXTS[1:])
    assert [example.title for example in rec.trace().examples] == [TEXTS[0], TEXTS[0], TEXTS[1]]


def test_byte_tokens_of_an_answer_are_shown_as_the_text_they_cover():
    model = trained(tokens="bytes")
    example = model.trace(["Tom"], targets=["汤"]).example()
    assert example.axes["target"].labels == ["汤", "汤", "汤", "<eos>"]
    assert [step.token for step in example.steps] == ["\\xe6", "\\xb1", "\\xa4", "<eos>"]


def test_scores_come_where_they_are_asked_for():
    model = trained()
    assert model.trace(TEXTS[:1]).attention().scores is None
    attention_map = model.trace(TEXTS[:1], scores=True).attention()
    np.testing.assert_allclose(torch.tensor(attention_map.scores).float().softmax(-1), attention_map.weights, atol=3e-3)


def test_trace_needs_texts_and_as_many_targets():
    model = trained()
    with pytest.raises(ValueError, match="trace needs one input or more, got none"):
        model.trace([])
    assert [example.title for example in model.trace("Tom").examples] == ["Tom"]
    with pytest.raises(ValueError, match="trace needs a target for each of 2 texts, got 1"):
        model.trace(TEXTS, targets=["x"])


def test_it_can_be_saved_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    from regard.viewer.io import load, save

    trace = trained("transformer", **KINDS["transformer"]).trace(TEXTS, beam=2)
    again = load(save(trace, tmp_path / "t.attn.safetensors"))
    assert [example.title for example in again.examples] == TEXTS
    assert again.graph == trace.graph
    np.testing.assert_array_equal(again.attention().weights, trace.attention().weights)
    np.testing.assert_array_equal(again.example().beams.weights, trace.example().beams.weights)


def test_a_trained_model_has_one_listener_at_a_time():
    model = trained()
    with regard.record(model):
        with pytest.raises(ValueError, match="Seq2Seq is being recorded already"), regard.record(model):
            pass
        assert model.recorder is not None
    assert model.recorder is None


def test_what_is_traced_is_the_search_for_as_many_answers_as_were_wanted():
    model = trained()
    with regard.record(model) as rec:
        model.predict(TEXTS[:1], beam=1, best=3)
    [parents] = [example.beams.parents for example in rec.trace().examples]
    assert parents.shape[1] >= 3


@pytest.mark.parametrize("beam", [1, 3])
def test_an_answer_found_in_rounded_numbers_has_no_trace(beam):
    model = trained()
    model.config = dataclasses.replace(model.config, search=Search(max_length=6, precision="int8"))
    with pytest.raises(ConfigError, match=r"^a trace shows what is computed in float32, and search\.precision=int8"):
        model.trace(TEXTS, beam=beam)
    told = ["汤姆", "杰瑞"]
    assert [each.axes["target"].text for each in model.trace(TEXTS, targets=told).examples] == told
