from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import Attention, Encoded
from regard.attention.stateful import Stateful
from regard.models.attention_factory import build_attention
from regard.models.decoders.recurrent import Recurrent
from regard.models.layers.cells import STATES
from regard.tree import repeat

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])
TARGET = torch.tensor([[1, 4, 5], [1, 6, 2]])
every_cell = pytest.mark.parametrize("cell", STATES)
SINGLE = {"tanh": nn.RNNCell, "lstm": nn.LSTMCell, "gru": nn.GRUCell}


def decoder(name="additive", **options):
    return Recurrent(9, 6, 4, embedding=5, attention=partial(build_attention, name), **options).eval()


def encoded(cell="lstm", layers=1, size=6):
    final = tuple(torch.randn(2, layers, size) for _ in range(STATES[cell]))
    return Encoded(torch.randn(2, 4, 6), KEEP, final)


def single(layer):
    """PyTorch's cell with the parameters of a layer."""
    cell = next(
        SINGLE[name] for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU), ("tanh", nn.RNN)) if isinstance(layer, kind)
    )
    made = cell(layer.input_size, layer.hidden_size)
    made.load_state_dict({name.removesuffix("_l0"): each for name, each in layer.state_dict().items()})
    return made


def carried(made, data, state):
    state = made(data, tuple(state) if len(state) > 1 else state[0])
    return list(state) if isinstance(state, tuple) else [state]


@every_cell
@pytest.mark.parametrize("feeding", [True, False])
def test_luong_steps_then_looks_and_feeds_what_it_found(cell, feeding):
    made, source = decoder(cell=cell, input_feeding=feeding), encoded(cell)
    memory = made.remember(source)
    state = [each[:, 0] for each in memory.initial]
    step, fed, expected = single(made.layers[0]), torch.zeros(2, 4), []
    for token in TARGET.unbind(1):
        embedded = made.embedding.table(token)
        state = carried(step, torch.cat((embedded, fed), dim=1) if feeding else embedded, state)
        context = made.cross(state[0][:, None], memory.memories["decoder.cross"]).context[:, 0]
        fed = torch.tanh(made.readout(torch.cat((state[0], context), dim=1)))
        expected.append(fed @ made.output.fit.weight.mT @ made.embedding.table.weight.mT)
    assert_close(made(TARGET, memory).output, torch.stack(expected, dim=1))


@every_cell
def test_bahdanau_looks_then_steps_and_reads_out_everything(cell):
    made, source = decoder(cell=cell, order="bahdanau"), encoded(cell)
    memory = made.remember(source)
    state = [each[:, 0] for each in memory.initial]
    step, expected = single(made.layers[0]), []
    for token in TARGET.unbind(1):
        embedded = made.embedding.table(token)
        context = made.cross(state[0][:, None], memory.memories["decoder.cross"]).context[:, 0]
        state = carried(step, torch.cat((embedded, context), dim=1), state)
        read = torch.tanh(made.readout(torch.cat((state[0], context, embedded), dim=1)))
        expected.append(read @ made.output.fit.weight.mT @ made.embedding.table.weight.mT)
    assert_close(made(TARGET, memory).output, torch.stack(expected, dim=1))


@every_cell
@pytest.mark.parametrize("summary", ["initial", "every_step", "both"])
def test_without_attention_the_source_is_one_vector(cell, summary):
    made, source = decoder("none", cell=cell, summary=summary), encoded(cell)
    memory, vector = made.remember(source), source.final[0][:, -1]
    state = [each[:, 0] for each in memory.initial]
    assert (sum(each.abs().sum() for each in state) == 0) == (summary == "every_step")
    step, expected = single(made.layers[0]), []
    for token in TARGET.unbind(1):
        seen = [made.embedding.table(token), *([vector] if summary != "initial" else [])]
        state = carried(step, torch.cat(seen, dim=1), state)
        read = torch.tanh(made.readout(torch.cat((state[0], *seen), dim=1)))
        expected.append(read @ made.output.fit.weight.mT @ made.embedding.table.weight.mT)
    found = made(TARGET, memory)
    assert_close(found.output, torch.stack(expected, dim=1))
    assert found.attended == {}
    assert (made.bridge is None) == (summary == "every_step")


@every_cell
def test_a_bridge_learns_the_initial_state_and_without_it_it_is_the_encoders(cell):
    source = encoded(cell, layers=2)
    bridged = decoder(cell=cell, layers=2)
    found = bridged.remember(source).initial
    expected = torch.tanh(bridged.bridge(source.final[0][:, -1]))
    assert len(found) == STATES[cell]
    assert_close(torch.stack(found, dim=1).flatten(1), expected)
    source = encoded(cell, layers=2, size=4)
    plain = decoder(cell=cell, layers=2, bridge=False)
    assert plain.remember(source).initial is source.final


@pytest.mark.parametrize("bridge", [True, False])
def test_cells_that_begin_with_zeros_know_their_source_by_the_attention_alone(bridge):
    source = encoded()
    made = decoder(initial="zeros", bridge=bridge)
    assert made.bridge is None
    assert all(each.shape[1:] == (1, 4) and not each.any() for each in made.remember(source).initial)
    other = source._replace(final=tuple(each + 1 for each in source.final))
    assert_close(made(TARGET, made.remember(other)).output, made(TARGET, made.remember(source)).output)


def test_before_any_training_the_attention_is_asked_otherwise_after_each_token():
    made = Recurrent(200, 64, 64, attention=partial(build_attention, "additive")).eval()
    memory = made.remember(Encoded(torch.randn(1, 5, 64) / 10, None, (torch.zeros(1, 1, 64),)))
    asked = []
    made.cross.register_forward_pre_hook(lambda module, given: asked.append(given[0][:, 0]))
    for token in range(40):
        made.write(torch.tensor([[token]]), memory, made.start(memory), weights=True)
    queries = torch.cat(asked)
    differing = (queries - queries.mean(0)).norm(dim=1).mean() / queries.norm(dim=1).mean()
    assert differing > 0.6  # 0.2 with embeddings within ±0.1


def test_states_that_do_not_fit_need_a_bridge():
    made = decoder(bridge=False)
    with pytest.raises(
        ValueError, match=r"start from states of \(layers, size\) .*got \[\(1, 6\), \(1, 6\)\]; build with bridge"
    ):
        made.remember(encoded())


OPTIONS = {
    "luong": {},
    "without feeding": {"input_feeding": False},
    "bahdanau": {"order": "bahdanau"},
    "two layers": {"layers": 2, "cell": "gru"},
    "two layers at once": {"layers": 2, "input_feeding": False},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


def stepped(made, memory, state, tokens):
    found = []
    for token in tokens.unbind(1):
        step = made.step(token, memory, state)
        state = step.state
        found.append(step.output)
    return torch.stack(found, dim=1), state


@every_option
@pytest.mark.parametrize("name", ["additive", "additive+local", "scaled_dot+causal"])
def test_a_scope_that_knows_positions_sees_the_same_at_every_step_and_in_every_beam(options, name):
    made, source = decoder(name, **options), encoded()
    memory = made.remember(source)
    expected = made(TARGET, memory).output
    found, _ = stepped(made, memory, repeat(made.start(memory), 2), repeat(TARGET, 2))
    assert_close(found, expected.repeat_interleave(2, dim=0))


@every_option
def test_it_goes_on_from_where_it_stopped(options):
    made, source = decoder(**options), encoded()
    memory = made.remember(source)
    begun = made(TARGET[:, :2], memory)
    assert begun.state.position.tolist() == [2, 2]
    assert_close(made.step(TARGET[:, 2], memory, begun.state).output, made(TARGET, memory).output[:, 2])


@every_option
def test_statistics_are_those_of_the_weights(options):
    made, source = decoder(**options), encoded()
    memory = made.remember(source)
    names = ("entropy", "received", "uniform")
    found = made(TARGET, memory, weights=True, statistics=names).attended["decoder.cross"]
    assert found.weights.shape == (2, 1, 3, 4)
    assert found.context.shape == (2, 3, 6)
    assert_close(found.statistics["entropy"], torch.special.entr(found.weights).sum(-1))
    assert_close(found.statistics["received"], found.weights.sum(2))
    assert_close(found.statistics["uniform"][1, 0], torch.tensor([1.5, 1.5, 0, 0]))
    quiet = made(TARGET, memory, statistics=names).attended["decoder.cross"]
    assert quiet.weights is None
    assert_close(quiet.statistics["entropy"], found.statistics["entropy"])
    assert made(TARGET, memory).attended["decoder.cross"].weights is None


@every_option
def test_a_variational_mask_is_the_same_at_every_step_though_each_comes_alone(options):
    made = decoder(**options, drop_embedding=0.5, drop_residual=0.5, variational=True).train()
    memory = made.remember(encoded())
    state = made.start(memory)
    assert len(state.masks) == 1 + len(made.layers)
    expected = made.write(TARGET, memory, state).output
    assert_close(stepped(made, memory, state, TARGET)[0], expected)
    assert not torch.equal(made(TARGET, memory).output, expected)


@every_option
def test_the_gradients_of_the_loop_are_those_of_single_steps(options):
    made, source = decoder(**options), encoded()
    weight = torch.randn(2, 3, 9)
    (made(TARGET, made.remember(source)).output * weight).sum().backward()
    found = {name: each.grad for name, each in made.named_parameters()}
    made.zero_grad()
    memory = made.remember(source)
    (stepped(made, memory, made.start(memory), TARGET)[0] * weight).sum().backward()
    assert_close({name: each.grad for name, each in made.named_parameters()}, found)


class Counting(Stateful):
    """Its context grows with every step, for each row apart."""

    def start(self, memory):
        return (torch.zeros(len(memory.values), 1, 1),)

    def step(self, query, memory, state, *, offset, weights):
        found = Attention.forward(self, query, memory, offset=offset, weights=weights)
        return found._replace(context=found.context * (state[0] + 1), state=(state[0] + 1,))


@every_option
def test_an_attention_that_carries_a_state_looks_step_by_step(options):
    make = partial(Counting, score="additive")
    made = Recurrent(9, 6, 4, attention=make, **options).eval()
    memory = made.remember(encoded())
    step = made(TARGET, memory)
    assert step.state.attention[0].flatten().tolist() == [3, 3]
    found, state = stepped(made, memory, repeat(made.start(memory), 2), repeat(TARGET, 2))
    assert_close(found, step.output.repeat_interleave(2, dim=0))
    assert state.attention[0].flatten().tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"order": "cho"}, "order needs to be 'bahdanau' or 'luong', got 'cho'"),
        ({"summary": "never"}, "summary needs to be 'initial', 'every_step' or 'both', got 'never'"),
        ({"initial": "ones"}, "initial needs to be 'source' or 'zeros', got 'ones'"),
        ({"cell": "qrnn"}, "a cell needs to be one of tanh, lstm, gru, got 'qrnn'"),
    ],
)
def test_what_does_not_exist_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        decoder(**options)
