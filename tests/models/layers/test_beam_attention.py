import pytest
import torch
from torch.testing import assert_close

from regard.attention import Attended, Attention, Encoded, MultiHead
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.scope.local import Local
from regard.attention.stateful import concatenate_steps
from regard.attention.types import Sampled
from regard.models.layers.beam_attention import attend_beams, is_stateless, measure_weights, unfold_beams
from regard.tree import repeat

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])


def remembered(attention):
    return attention.remember(Encoded(torch.randn(2, 4, 6), KEEP))


@pytest.mark.parametrize(
    "attention",
    [
        Attention(6, score="additive"),
        Attention(6, score="dot", normalise="sparsemax"),
        Attention(6, scope=Local(1)),
        MultiHead(6, heads=2),
    ],
    ids=["additive", "sparsemax", "local", "heads"],
)
@pytest.mark.parametrize("queries", [1, 3])
def test_beams_share_one_memory_and_find_what_they_would_alone(attention, queries):
    memory, query = remembered(attention), torch.randn(6, queries, 6)
    position = torch.tensor([0, 1, 2, 0, 0, 3])
    found = attend_beams(attention, query, memory, position=position, weights=True)
    expected = attention(query, repeat(memory, 3), offset=position, weights=True)
    assert_close(found.context, expected.context)
    assert_close(found.weights, expected.weights)
    assert attend_beams(attention, query, memory, position=position).weights is None


def test_all_beams_may_stand_at_one_position():
    attention = Attention(6, scope=Local(1))
    memory, query = remembered(attention), torch.randn(4, 1, 6)
    found = attend_beams(attention, query, memory, position=2, weights=True)
    assert_close(found.weights, attention(query, repeat(memory, 2), offset=2, weights=True).weights)


def test_one_row_for_each_source_is_asked_as_it_is():
    attention = Attention(6)
    memory, query = remembered(attention), torch.randn(2, 3, 6)
    found = attend_beams(attention, query, memory, weights=True, statistics=("entropy",))
    expected = attention(query, memory, weights=True, statistics=("entropy",))
    assert torch.equal(found.weights, expected.weights)
    assert torch.equal(found.statistics["entropy"], expected.statistics["entropy"])


def test_rows_must_be_as_many_for_each_source():
    attention = Attention(6)
    with pytest.raises(ValueError, match="3 rows met a memory of 2 sources; there must be as many rows for each source"):
        attend_beams(attention, torch.randn(3, 1, 6), remembered(attention))


class Counting(Attention):
    """Carries how often it was asked, for each row."""

    def start(self, memory):
        return (torch.zeros(len(memory.values)),)

    def forward(self, query, memory, state=(), **options):
        return super().forward(query, memory, (state[0] + 1,), **options)


def test_an_attention_with_a_state_of_its_own_carries_one_for_each_beam():
    attention = Counting(6)
    memory, query = remembered(attention), torch.randn(4, 1, 6)
    state = repeat(attention.start(memory), 2)
    assert not is_stateless(state)
    found = attend_beams(attention, query, memory, state)
    assert found.state[0].tolist() == [1, 1, 1, 1]
    assert_close(found.context, Attention.forward(attention, query, repeat(memory, 2)).context)


def test_unfolding_keeps_beams_of_a_source_together():
    context = torch.arange(8.0).view(2, 4, 1)  # two sources, two beams of two queries each
    weights = torch.arange(8.0).view(2, 1, 4, 1)
    sampled = Sampled(weights[..., 0], weights[..., 0])
    found = unfold_beams(Attended(context, weights, sampled=sampled), 2)
    assert found.context[..., 0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert found.weights[:, 0, :, 0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert found.sampled.entropy[:, 0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("scope", ["everywhere", Local(1)], ids=str)
@pytest.mark.parametrize("keep", [KEEP, None], ids=["padded", "whole"])
def test_a_report_of_all_steps_equals_asking_for_it(scope, keep):
    attention = Attention(6, scope=scope)
    memory, query = attention.remember(Encoded(torch.randn(2, 4, 6), keep)), torch.randn(2, 3, 6)
    names = ("entropy", "received", "uniform", "top_2")
    expected = attention(query, memory, offset=0, weights=True, statistics=names)
    steps = [attention(query[:, place : place + 1], memory, offset=place, weights=True) for place in range(3)]
    found = measure_weights(attention, concatenate_steps(steps), keep, weights=True, statistics=names)
    assert_close(found.weights, expected.weights)
    assert_close(dict(found.statistics), dict(expected.statistics))
    assert measure_weights(attention, concatenate_steps(steps), keep, weights=False, statistics=names).weights is None
    assert measure_weights(attention, concatenate_steps(steps), keep, weights=False, statistics=()).weights is None


@pytest.mark.parametrize(
    "attention", [Attention(6, scope=Local(1)), LocalP(6), LocalM(6, width=1)], ids=["local", "local_p", "local_m"]
)
def test_a_graph_whose_beams_stay_open_gives_each_a_memory_and_finds_the_same(attention, monkeypatch):
    memory, query = remembered(attention), torch.randn(6, 1, 6)
    position = torch.tensor([0, 1, 2, 0, 0, 3])
    expected = attend_beams(attention, query, memory, position=position, weights=True)
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    asked, forward = [], type(attention).forward

    def noting(self, query, memory, *arguments, **options):
        asked.append(len(memory.values))
        return forward(self, query, memory, *arguments, **options)

    monkeypatch.setattr(type(attention), "forward", noting)
    found = attend_beams(attention, query, memory, position=position, weights=True)
    assert asked == [6]
    assert_close(found.context, expected.context)
    assert_close(found.weights, expected.weights)
