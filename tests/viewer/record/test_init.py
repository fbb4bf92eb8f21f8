import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard.attention import MultiHead
from regard.data.axis import Text
from regard.data.batch import pad
from regard.viewer.io.check import check

from ...models.small import KINDS, batch, made

MODELS = {
    "recurrent, bahdanau": ("additive", KINDS["recurrent, recurrent, lstm, bahdanau"]),
    "recurrent, luong": ("bilinear", KINDS["recurrent, recurrent, gru, luong"]),
    "recurrent at once": ("additive+sparsemax", KINDS["recurrent, recurrent, gru, luong without feeding"]),
    "convolution": ("dot", KINDS["convolution, convolution"]),
    "transformer": ("transformer", KINDS["transformer, transformer, pre"] | {"layers": 2}),
    "transformer without cross attention": ("none", KINDS["transformer, transformer, post"]),
}
MECHANISMS = regard.registry.names("mechanisms")


def state(model):
    """What a recorder could leave behind: hooks, and attributes of the modules themselves."""
    return {
        name: (
            set(module.__dict__),
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
            getattr(module, "impl", None),
        )
        for name, module in model.named_modules()
    }


@pytest.mark.parametrize("kind", MODELS)
def test_recording_changes_no_bit_of_what_a_model_gives_and_leaves_it_as_it_was(kind):
    name, options = MODELS[kind]
    model, (source, target) = made(name, **options).eval(), batch()
    plain, before = model(source, target), state(model)
    for settings in ({}, {"statistics": True, "graph": False}, {"rows": (0, 2), "scores": True, "graph": False}):
        with regard.record(model, **settings) as rec:
            recorded = model(source, target)
        assert torch.equal(recorded.output, plain.output)
        assert all(each.weights is None and not each.statistics for each in recorded.attended.values())
        assert state(model) == before
        check(rec.trace())


@pytest.mark.parametrize("kind", MODELS)
def test_gradients_stay_the_same_and_a_backward_pass_is_not_heard(kind):
    name, options = MODELS[kind]
    model, (source, target) = made(name, **options), batch()
    model(source, target).output.square().sum().backward()
    expected = {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}
    model.zero_grad()
    with regard.record(model) as rec:
        output = model(source, target).output
        heard = {name: len(calls) for name, calls in rec.runs[0].calls.items()}
        output.square().sum().backward()
    assert {name: len(calls) for name, calls in rec.runs[0].calls.items()} == heard
    for name, gradient in expected.items():
        assert torch.equal(model.get_parameter(name).grad, gradient), name


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_recorded_is_what_the_model_itself_reports(kind):
    name, options = MODELS[kind]
    model, (source, target) = made(name, **options).eval(), batch()
    attended = model(source, target, weights=True).attended
    with regard.record(model) as rec:
        model(source, target)
    trace = rec.trace()
    assert len(trace.examples) == 3
    for row, example in enumerate(trace.examples):
        attentions = {attention_map.name: attention_map for attention_map in example.attentions}
        assert set(attentions) == set(model.attentions())
        for path, each in attended.items():
            weights = each.weights[row].detach()
            kept = weights[..., : int(source.keep[row].sum())] if path.endswith("cross") else weights
            np.testing.assert_allclose(attentions[path].weights, kept, atol=1e-3)
            assert attentions[path].weights.dtype == np.float16


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_heard_step_by_step_as_all_at_once(name):
    model, (source, target) = made(name, order="bahdanau").eval(), batch()
    source = pad([[4, 5, 6, 7, 2]])
    with torch.no_grad(), regard.record(model) as together:
        model(source, target[:1])
    with torch.no_grad(), regard.record(model) as stepwise:
        memory = model.encode(source)
        carried = model.decoder.start(memory)
        for token in target[0]:
            carried = model.decoder.step(token[None], memory, carried).state
    one, other = together.trace(), stepwise.trace()
    check(one)
    check(other)
    assert one.attention().weights.shape == (model.decoder.cross.heads if hasattr(model.decoder.cross, "heads") else 1, 3, 5)
    np.testing.assert_allclose(one.attention().weights, other.attention().weights, atol=2e-3)
    for statistic, values in one.attention().statistics.items():
        np.testing.assert_allclose(values, other.attention().statistics[statistic], atol=1e-4)


def test_after_an_error_nothing_is_left():
    model, (source, target) = made("transformer", encoder="transformer", decoder="transformer").eval(), batch()
    before = state(model)
    with pytest.raises(IndexError), regard.record(model):
        model(source, torch.tensor([[99]] * 3))  # there is no such token
    assert state(model) == before
    assert torch.overrides._get_current_function_mode() is None
    with regard.record(model) as rec:
        model(source, target)
    assert len(rec.trace().examples) == 3


def test_each_run_of_a_model_is_an_example_and_parts_can_be_told_apart():
    model, (source, target) = made().eval(), batch()
    with torch.no_grad(), regard.record(model) as rec:
        model(source, target)
        model(pad([[4, 5, 2]]), target[:1])
        rec.begin("by hand")
        memory = model.encode(pad([[5, 2]]))
        model.decoder.step(torch.tensor([1]), memory, model.decoder.start(memory))
    trace = rec.trace()
    assert [example.title for example in trace.examples] == ["row 0", "row 1", "row 2", "", "by hand"]
    assert trace.attention(example=4).weights.shape == (1, 1, 2)


def test_axes_are_taken_by_name_or_for_whatever_looks_elsewhere():
    model = made().eval()
    words, answer = Text.of(["Tom", "chases", "<eos>"], special=[2]), Text.of(["汤姆", "追"], lang="zh")
    with torch.no_grad(), regard.record(model) as rec:
        model(pad([[4, 5, 2]]), torch.tensor([[1, 4]]))
    assert rec.trace(answer, words).example().axes == {"target": answer, "source": words}
    assert rec.trace(axes={"source": words}).example().axes["source"] is words
    other = rec.trace(places={"decoder.cross": ("steps", "frames")}).attention()
    assert (other.query, other.key) == ("steps", "frames")
    with pytest.raises(
        ValueError, match="the axis 'source' has 2 places, and 3 were recorded; give as many as the model saw"
    ):
        rec.trace(key=answer)


def test_the_cost_is_counted_and_noted():
    heads, source = MultiHead(8, heads=2), torch.randn(1, 64, 8)
    with regard.record(heads) as rec:
        heads(source, heads.remember(source))
    statistics = 2 * 4 * 64 * (4 + 2)  # heads, bytes, places; four by query and two by key
    values = 2 * 4 * 64
    assert rec.cost.bytes == 2 * 2 * 64 * 64 + statistics + values
    assert 0 < rec.cost.seconds < 10
    assert rec.trace().notes == (f"{rec.cost}.",)
    assert str(type(rec.cost)(0.25, 2_500_000)) == "Recording took 0.250 s beside the model's own time and holds 2.5 MB"
    assert str(type(rec.cost)(0.25, 2_500)).endswith("holds 2.5 kB")


def test_nothing_heard_is_an_error_that_says_what_there_is():
    with regard.record(nn.Linear(2, 2)) as rec:
        pass
    with pytest.raises(ValueError, match=r"no attention of Linear was heard; it has none. Run the model inside the block"):
        rec.trace()


@pytest.mark.parametrize("rows", [(), (3, 1), (1, 1), (-1, 2)])
def test_rows_are_numbers_of_queries_in_order(rows):
    with pytest.raises(ValueError, match="rows needs the numbers of queries, each once and in order"):
        regard.record(nn.Linear(2, 2), rows=rows)


def test_nothing_to_keep_is_refused():
    with pytest.raises(ValueError, match="record needs something to keep: weights=True, statistics=True, or rows"):
        regard.record(nn.Linear(2, 2), weights=False)


def test_nobody_listens_twice_with_one_recorder():
    heads, source = MultiHead(8, heads=2).eval(), torch.randn(1, 4, 8)
    before = state(heads)
    with regard.record(heads) as rec:
        with pytest.raises(ValueError, match="MultiHead is being recorded already; leave that block before another begins"):
            rec.__enter__()
        heads(source, heads.remember(source))
    assert state(heads) == before
    with rec:
        heads(source, heads.remember(source))
    assert len(rec.trace().examples) == 2
