"""What mocha adds to monotonic: the chunk. That it walks like monotonic is tested there, for both."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.mocha import ChunkNormaliser, Mocha, distribute_stops, slide_windows
from regard.attention.mechanisms.monotonic import Monotonic, MonotonicNormaliser

from .walks import counted, given


def weights(made, query, memory):
    return made(query, memory, weights=True).weights[:, 0]


def test_a_chunk_by_hand():
    """The walk stops at the third key and then at the fourth; the chunk is worth 1, 2, 6 and 3."""
    energies = torch.tensor([[[-1.0, -1.0, 1.0, 1.0], [9.0, 9.0, -1.0, 1.0]]])
    worth = torch.tensor([1.0, 2.0, 6.0, 3.0]).log().expand(1, 2, 4)
    query = torch.cat((energies, worth), dim=-1)
    made, memory = given(Mocha(8, chunk=2), query)
    assert_close(weights(made, query, memory)[0], torch.tensor([[0, 2 / 8, 6 / 8, 0], [0, 0, 6 / 9, 3 / 9]]))
    made.chunk = 3
    assert_close(weights(made, query, memory)[0, 1], torch.tensor([0, 2 / 11, 6 / 11, 3 / 11]))


def test_expected_chunks_by_hand():
    """Even chances stop at the three keys with 1/2, 1/4 and 1/8; each shares itself with the key before by 1, 2 and 6."""
    query = torch.cat((torch.zeros(1, 1, 3), torch.tensor([[[1.0, 2.0, 6.0]]]).log()), dim=-1)
    made, memory = given(Mocha(6, chunk=2, noise=0.0), query, mode=True)
    expected = torch.tensor([1 / 2 + 1 / 4 * 1 / 3, 1 / 4 * 2 / 3 + 1 / 8 * 2 / 8, 1 / 8 * 6 / 8])
    assert_close(weights(made, query, memory)[0, 0], expected)


def test_training_weights_are_the_mean_of_all_chunks():
    """b_j = Σ_k a_k softmax_j(u_{k-w+1}, ..., u_k), one number after the other."""
    stops, energies = torch.rand(2, 1, 3, 6, dtype=torch.float64), torch.randn(2, 1, 3, 6, dtype=torch.float64)
    for width in (1, 2, 3, 6, 9):
        expected = torch.zeros_like(stops)
        for k in range(6):
            chunk = slice(max(0, k + 1 - width), k + 1)
            expected[..., chunk] += stops[..., k : k + 1] * energies[..., chunk].softmax(-1)
        assert_close(distribute_stops(stops, energies, width), expected, rtol=1e-13, atol=1e-13)


def test_hidden_keys_do_not_count_in_a_chunk():
    stops, energies = torch.rand(1, 1, 1, 5, dtype=torch.float64), torch.randn(1, 1, 1, 5, dtype=torch.float64)
    allowed = torch.tensor([True, False, True, False, True])
    found = distribute_stops(stops.masked_fill(~allowed, 0.0), energies, 2, allowed[None, None, None])
    assert_close(found[..., allowed], distribute_stops(stops[..., allowed], energies[..., allowed], 2))
    assert not found[..., ~allowed].any()


def test_a_chunk_of_tiny_worth_is_not_lost_beside_a_large_one():
    stops = torch.tensor([[[[0.0, 0.5, 0.0, 0.5]]]], requires_grad=True)
    energies = torch.tensor([[[[-1e4, -1e4, 1e4, 1e4]]]], requires_grad=True)
    found = distribute_stops(stops, energies, 2)
    assert found.tolist() == [[[[0.25, 0.25, 0.25, 0.25]]]]
    found.square().sum().backward()
    assert stops.grad.isfinite().all()
    assert energies.grad.isfinite().all()


def test_gradients_equal_small_differences_around_hidden_keys():
    stops = torch.rand(1, 1, 2, 5, dtype=torch.float64, requires_grad=True)
    energies = torch.randn(1, 1, 2, 5, dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([True, False, True, True, False])[None, None, None]
    assert gradcheck(lambda *inputs: distribute_stops(*inputs, 2, allowed), (stops, energies))


def test_windows_reach_to_both_sides():
    found = slide_windows(torch.tensor([1.0, 2.0, 3.0]), 1, 0, 0.0)
    assert found.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert slide_windows(torch.tensor([1.0, 2.0]), 0, 2, math.inf).tolist() == [[1, 2, math.inf], [2, math.inf, math.inf]]


@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_a_chunk_of_one_key_is_monotonic(mode):
    made = Mocha(4, 5, chunk=1, r=0.0, noise=0.0).train(mode)
    alone = Monotonic(4, 5, noise=0.0).train(mode)
    alone.load_state_dict(made.state_dict(), strict=False)
    source, query = torch.randn(2, 6, 5), torch.randn(2, 4, 4)
    assert_close(made(query, made.remember(source)).context, alone(query, alone.remember(source)).context)


def test_when_energies_are_certain_training_and_evaluation_agree():
    query = torch.randn(3, 6, 14)
    query[..., :7] = 100 * query[..., :7].sign()
    keep = torch.rand(3, 7) < 0.7
    made, memory = given(Mocha(14, chunk=3), query, keep)
    hard = weights(made, query, memory)
    assert_close(weights(made.train(), query, memory), hard)
    assert ((hard > 0).sum(-1) == 3).any()


def test_a_chunk_reaches_back_over_a_long_hole():
    keep = torch.ones(2, 200, dtype=torch.bool)
    keep[0, 3:150] = False
    query = torch.zeros(2, 1, 400)
    query[..., :200] = -1.0
    query[..., 150] = 1.0
    made, memory = given(Mocha(400, chunk=3), query, keep)
    found = weights(made, query, memory)
    assert found[0, 0].nonzero()[:, 0].tolist() == [1, 2, 150]
    assert found[1, 0].nonzero()[:, 0].tolist() == [148, 149, 150]


@pytest.mark.parametrize("kind", [Monotonic, Mocha])
def test_an_exported_program_meets_all_keys_at_once_and_reads_the_same(kind, monkeypatch):
    made = kind(4, 5, r=0.0).eval()
    keep = torch.rand(6, 50) < 0.7
    memory, query = made.remember(Encoded(torch.randn(6, 50, 5), keep)), torch.randn(6, 9, 4)
    right = made(query, memory, weights=True)
    assert len(set(right.state.tolist())) > 2
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    found = made(query, memory, weights=True)
    assert found.state.tolist() == right.state.tolist()
    assert_close(found.weights, right.weights)
    assert_close(found.context, right.context)


def test_only_a_chunk_is_compared_a_second_time():
    made = Mocha(4, 5, chunk=4, r=9.0).eval()
    with counted(made.score.worth) as energies:
        made(torch.randn(2, 3, 4), made.remember(torch.randn(2, 100, 5)))
    assert energies[0] == 2 * 3 * 4


def test_over_all_queries_at_once_the_stages_give_the_same():
    for mode in (True, False):
        made = Mocha(4, 5, r=0.0, noise=0.0).train(mode)
        memory, query = made.remember(Encoded(torch.randn(2, 6, 5))), torch.randn(2, 3, 4)
        normalise = ChunkNormaliser(made.normalise, made.score.score_chunk(query[:, None], memory.keys), made.chunk)
        assert_close(normalise(made.score(query[:, None], memory.keys))[:, 0], weights(made, query, memory))
        assert not normalise.sums_to_one
    assert isinstance(made.normalise, MonotonicNormaliser)


def test_a_chunk_without_keys_is_refused():
    with pytest.raises(ValueError, match="Mocha needs a chunk of 1 or more keys, got 0; 1 is Monotonic"):
        Mocha(4, chunk=0)
