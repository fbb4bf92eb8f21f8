import pytest
import torch
from torch.testing import assert_close

from regard.attention import Attended, Attention, Encoded, Sampled
from regard.attention.mechanisms.coverage import Coverage
from regard.attention.stateful import Stateful, concatenate_steps

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])


class Counting(Stateful):
    """Its context grows with every look, for each row apart."""

    def start(self, memory):
        return (torch.zeros(len(memory.values), 1, 1),)

    def step(self, query, memory, state, *, offset, weights):
        found = Attention.forward(self, query, memory, offset=offset, weights=weights)
        return found._replace(context=found.context * (state[0] + 1), state=(state[0] + 1,))


def test_several_queries_are_several_looks():
    attention = Counting(6, score="additive", scope="causal")
    memory, query = attention.remember(Encoded(torch.randn(2, 4, 6), KEEP)), torch.randn(2, 3, 6)
    together = attention(query, memory, weights=True, statistics=("entropy", "received"))
    state, looks = attention.start(memory), []
    for place in range(3):
        looks.append(attention(query[:, place : place + 1], memory, state, offset=place, weights=True))
        state = looks[-1].state
    alone = concatenate_steps(looks)
    assert_close((together.context, together.weights, together.state), (alone.context, alone.weights, alone.state))
    assert together.state[0].flatten().tolist() == [3, 3]
    assert_close(together.statistics["received"], together.weights.sum(2))
    assert together.statistics["entropy"].shape == (2, 1, 3)


def test_weights_come_only_when_asked_for():
    attention = Counting(6, score="additive")
    memory, query = attention.remember(torch.randn(2, 4, 6)), torch.randn(2, 3, 6)
    assert attention(query, memory).weights is None
    assert attention(query, memory, statistics=("entropy",)).weights is None
    assert attention.positional


def test_no_query_is_refused():
    attention = Counting(6, score="additive")
    with pytest.raises(ValueError, match="Counting needs at least one query, got none"):
        attention(torch.randn(2, 0, 6), attention.remember(torch.randn(2, 4, 6)))


def test_joined_steps_stand_in_a_row_and_keys_to_come_have_no_weight():
    ones = torch.ones(1, 1, 1)
    first = Attended(torch.zeros(1, 1, 2), torch.ones(1, 1, 1, 1), sampled=Sampled(ones, ones))
    second = Attended(torch.ones(1, 1, 2), torch.full((1, 1, 1, 2), 0.5), state=(3,), sampled=Sampled(2 * ones, ones))
    found = concatenate_steps([first, second])
    assert found.context.tolist() == [[[0, 0], [1, 1]]]
    assert found.weights.tolist() == [[[[1, 0], [0.5, 0.5]]]]
    assert found.state == (3,)
    assert found.sampled.log_probability.tolist() == [[[1, 2]]]
    assert concatenate_steps([Attended(torch.zeros(1, 1, 2))]).weights is None


def test_packed_rows_are_refused():
    attention, numbers = Coverage(4), torch.ones(1, 3, dtype=torch.long)
    memory = attention.remember(Encoded(torch.randn(1, 3, 4), documents=numbers))
    with pytest.raises(ValueError, match="packed rows need an attention without one"):
        attention(torch.randn(1, 3, 4), memory)
