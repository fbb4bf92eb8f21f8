from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard import registry
from regard.attention import Attention, Encoded
from regard.attention.positions.learned import Learned
from regard.attention.stateful import Stateful
from regard.models.attention_factory import build_attention
from regard.models.decoders.convolution import Convolution, count_source_positions
from regard.tree import repeat, select

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])
TARGET = torch.tensor([[1, 4, 5, 3], [1, 6, 2, 7]])


def decoder(name="dot", **options):
    options = {"layers": 2} | options
    return Convolution(9, 6, 8, attention=partial(build_attention, name, heads=2), **options).eval()


def encoded():
    tokens = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
    return Encoded(torch.randn(2, 4, 6), KEEP, (torch.randn(2, 1, 6),), torch.randn(2, 4, 6), tokens)


def stepped(made, memory, tokens):
    state = repeat(made.start(memory), len(tokens) // 2)
    found = []
    for token in tokens.unbind(1):
        step = made.step(token, memory, state)
        state = step.state
        found.append(step.output)
    return torch.stack(found, dim=1), state


def test_each_layer_mixes_what_came_before_then_looks_at_the_source():
    made, source = decoder(embedding=6), encoded()
    embedded = made.embedding(TARGET)
    data, half = made.widen(embedded), 0.5**0.5
    for layer in made.layers:
        mixed = []
        for place in range(4):
            rows = [data[:, each] if each >= 0 else torch.zeros(2, 8) for each in (place - 2, place - 1, place)]
            window = torch.stack(rows, dim=-1)[:, None]  # batch 1 size places
            both = (layer.gated.convolution.weight * window).sum((2, 3)) + layer.gated.convolution.bias
            mixed.append(both[:, :8] * both[:, 8:].sigmoid())
        found = torch.stack(mixed, dim=1)
        asking = (layer.query(found) + embedded) * half
        scores = (asking @ source.data.mT).masked_fill(~KEEP[:, None], -torch.inf)
        context = scores.softmax(-1) @ source.values.masked_fill(~KEEP[..., None], 0)
        count = torch.tensor([4.0, 2.0])[:, None, None]
        found = (found + layer.fit(context * count.sqrt())) * half
        data = (found + data) * half
    expected = made.narrow(data) @ made.embedding.table.weight.mT
    assert_close(made(TARGET, made.remember(source)).output, expected)


@pytest.mark.parametrize("name", ["dot", "additive+local", "scaled_dot+causal", "transformer", "none"])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_beams_keep_their_own_inputs_and_share_the_source(name, kernel):
    made, source = decoder(name, kernel=kernel), encoded()
    memory = made.remember(source)
    expected = made(TARGET, memory)
    found, state = stepped(made, memory, repeat(TARGET, 3))
    assert_close(found, expected.output.repeat_interleave(3, dim=0))
    for inputs, whole in zip(state.inputs, expected.state.inputs, strict=True):
        assert inputs.shape == (6, kernel - 1, 8)
        assert_close(inputs, repeat(whole, 3))
    assert state.position.tolist() == [4] * 6


def test_a_state_does_not_grow():
    made, source = decoder(), encoded()
    memory = made.remember(source)
    state = made.start(memory)
    assert all(each.shape == (2, 2, 8) and not each.any() for each in state.inputs)
    longer = made(TARGET.repeat(1, 10), memory).state
    assert [each.shape for each in longer.inputs] == [each.shape for each in state.inputs]


def test_search_may_change_the_order_of_rows():
    made, source = decoder(), encoded()
    memory = made.remember(source)
    _, state = stepped(made, memory, TARGET[:, :2])
    expected = made.step(TARGET[:, 2], memory, state).output
    rows = torch.tensor([1, 0])
    found = made.step(TARGET[rows, 2], select(memory, rows), select(state, rows)).output
    assert_close(found, expected[rows])


@pytest.mark.parametrize("first", [1, 2, 3])
def test_it_goes_on_from_where_it_stopped_by_any_number_of_tokens(first):
    made, source = decoder("additive+local"), encoded()
    memory = made.remember(source)
    begun = made(TARGET[:, :first], memory)
    assert_close(made.write(TARGET[:, first:], memory, begun.state).output, made(TARGET, memory).output[:, first:])


def test_a_token_sees_nothing_that_comes_after_it_and_as_far_back_as_its_layers_reach():
    made = decoder("none", layers=2, kernel=2)
    memory, long = made.remember(encoded()), torch.tensor([[1, 4, 5, 3, 6, 7], [1, 6, 2, 7, 3, 4]])
    before, far = made(long, memory).output, []
    for place in range(6):
        other = long.clone()
        other[:, place] = 8
        far.append(not torch.equal(made(other, memory).output[:, 3], before[:, 3]))
    assert far == [False, True, True, True, False, False]


def test_without_attention_the_source_is_added_to_every_input():
    made, source = decoder("none"), encoded()
    memory = made.remember(source)
    assert memory.memories == {}
    assert_close(memory.summary, made.summary(source.final[0][:, -1]))
    step = made(TARGET, memory)
    assert step.attended == {}
    other = made(TARGET, memory._replace(summary=memory.summary + 1)).output
    assert ((other - step.output).abs().amax(-1) > 0).all()


def test_what_an_attention_found_is_fitted_to_the_layer():
    assert decoder("additive").layers[0].fit.weight.shape == (8, 6)
    assert isinstance(decoder("transformer").layers[0].fit, nn.Identity)
    assert decoder("transformer", embedding=4).layers[0].fit.weight.shape == (8, 4)


def test_weights_and_statistics_come_by_name():
    made, source = decoder(), encoded()
    step = made(TARGET, made.remember(source), weights=True, statistics=("entropy",))
    assert sorted(step.attended) == ["decoder.0.cross", "decoder.1.cross"]
    assert step.attended["decoder.1.cross"].weights.shape == (2, 1, 4, 4)
    assert step.attended["decoder.1.cross"].weights[1, :, :, 2:].abs().sum() == 0
    assert step.attended["decoder.0.cross"].statistics["entropy"].shape == (2, 1, 4)
    assert made(TARGET, made.remember(source)).attended["decoder.0.cross"].weights is None


def test_an_embedding_of_another_width_is_fitted():
    made = decoder(embedding=4, positions=Learned(2, "concat"))
    assert made.widen.weight.shape == (8, 6)
    assert made.narrow.weight.shape == (4, 8)
    memory = made.remember(encoded())
    assert_close(stepped(made, memory, TARGET)[0], made(TARGET, memory).output)


def test_an_untied_output_has_its_own_matrix():
    assert decoder().output.weight is None
    assert decoder(embedding=5, tie=False).output.weight.shape == (9, 5)


def test_a_source_counts_its_places_without_padding():
    memory = decoder().remember(encoded()).memories["decoder.0.cross"]
    assert count_source_positions(memory).tolist() == [[4], [2]]
    assert count_source_positions(memory._replace(keep=None)).tolist() == [[4], [4]]
    assert count_source_positions(memory._replace(keep=torch.zeros_like(KEEP))).tolist() == [[1], [1]]


def test_an_empty_source_says_nothing_and_breaks_nothing():
    made, source = decoder(), encoded()
    keep = torch.tensor([[True] * 4, [False] * 4])
    memory = made.remember(source._replace(keep=keep))
    output = made(TARGET, memory).output
    output.sum().backward()
    assert output.isfinite().all()
    assert all(each.grad.isfinite().all() for each in made.parameters())


class Counting(Stateful):
    """Its context grows with every step, for each row apart."""

    def start(self, memory):
        return (torch.zeros(len(memory.values), 1, 1),)

    def step(self, query, memory, state, *, offset, weights):
        found = Attention.forward(self, query, memory, offset=offset, weights=weights)
        return found._replace(context=found.context * (state[0] + 1), state=(state[0] + 1,))


def test_an_attention_that_carries_a_state_looks_step_by_step():
    made = Convolution(9, 6, 8, layers=2, attention=partial(Counting, score="additive")).eval()
    memory = made.remember(encoded())
    step = made(TARGET, memory)
    assert [each[0].flatten().tolist() for each in step.state.attentions] == [[4, 4], [4, 4]]
    found, _ = stepped(made, memory, repeat(TARGET, 2))
    assert_close(found, step.output.repeat_interleave(2, dim=0))


@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_every_mechanism_reads_the_source_by_its_name_step_by_step_and_at_once(name):
    made, source = decoder(name), encoded()
    memory = made.remember(source)
    expected = made(TARGET, memory).output
    assert_close(stepped(made, memory, repeat(TARGET, 2))[0], expected.repeat_interleave(2, dim=0))
    made.train()(TARGET, made.remember(source)).output.sum().backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in made.parameters())


def test_dropout_falls_on_what_enters_a_layer_and_on_the_output_while_training():
    made = decoder(drop_residual=0.5)
    memory = made.remember(encoded())
    plain = made(TARGET, memory).output
    assert torch.equal(made(TARGET, memory).output, plain)
    assert not torch.equal(made.train()(TARGET, memory).output, plain)
    state = made(TARGET, memory).state  # what a layer keeps is what entered it, after dropout
    assert 0.2 < (state.inputs[0] == 0).float().mean() < 0.8
