import numpy as np
import pytest
import torch

from regard.attention import statistics
from regard.data.axis import Audio, Image, Index, Text
from regard.viewer.metrics import curves

CAUSAL = np.tril(np.ones((3, 3), bool))
WEIGHTS = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]])


def test_received_is_a_column_sum_over_what_uniform_attention_gives():
    assert curves.baseline(None, 3, 3).tolist() == [1, 1, 1]
    assert curves.received(WEIGHTS).tolist() == pytest.approx([1.7, 0.7, 0.6])
    assert curves.baseline(None, 4, 2).tolist() == [2, 2]


def test_under_a_causal_mask_the_latest_key_is_not_forgotten():
    assert curves.baseline(CAUSAL, 3, 3).tolist() == pytest.approx([1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3])
    assert curves.received(WEIGHTS, CAUSAL).tolist() == pytest.approx([1.7 / (11 / 6), 0.7 / (5 / 6), 0.6 / (1 / 3)])


@pytest.mark.parametrize("places", [1, 2, 17, 400])
def test_the_causal_baseline_is_a_difference_of_harmonic_numbers(places):
    harmonic = np.concatenate([[0], np.cumsum(1 / np.arange(1, places + 1))])
    found = curves.baseline(np.tril(np.ones((places, places), bool)), places, places)
    assert found == pytest.approx(harmonic[-1] - harmonic[:-1])


def test_uniform_attention_receives_exactly_one_everywhere():
    uniform = CAUSAL / CAUSAL.sum(-1, keepdims=True)
    assert curves.received(uniform, CAUSAL).tolist() == pytest.approx([1, 1, 1])


def test_a_key_that_nobody_may_see_receives_nothing_and_not_nan():
    allowed = np.array([[True, False], [True, False]])
    assert curves.received(np.array([[1.0, 0], [1, 0]]), allowed).tolist() == [1, 0]


def test_sharpness_counts_the_keys_that_are_really_used():
    sharp = curves.sharpness(WEIGHTS)
    assert sharp.largest.tolist() == [1, 0.5, 0.6]
    assert sharp.effective[:2].tolist() == pytest.approx([1, 2])
    assert sharp.effective[2] == pytest.approx(np.exp(-(0.4 * np.log(0.2) + 0.6 * np.log(0.6))))


def test_a_query_that_reads_nothing_has_no_sharpness_and_counts_in_no_mean():
    weights = np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert curves.sharpness(weights).largest.tolist() == [0, 1, 1]
    assert curves.sharpness(weights).effective.tolist() == [0, 1, 1]
    assert curves.entropy(weights).tolist() == [0, 0, 0]
    assert curves.diagonality(weights) == 1
    assert curves.distance(np.zeros((3, 3))) == 0
    assert curves.distance(weights) == 0


def test_focus_is_the_mean_position_and_its_spread():
    found = curves.focus(WEIGHTS)
    assert found.mean.tolist() == pytest.approx([0, 0.5, 1.4])
    assert found.spread.tolist() == pytest.approx([0, 0.5, np.sqrt(0.2 * 1.4**2 + 0.2 * 0.4**2 + 0.6 * 0.6**2)])


def test_weights_that_do_not_sum_to_one_count_by_their_share():
    signed = np.array([[3.0, -1.0]])
    assert curves.shares(signed).tolist() == [[0.75, 0.25]]
    assert curves.focus(signed).mean.tolist() == [0.25]
    assert curves.entropy(signed)[0] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert curves.sink(signed, (0,)).tolist() == [0.75]


def test_curves_agree_with_what_kernels_measure():
    weights = torch.rand(1, 4, 9, 13, dtype=torch.float64) * (torch.rand(1, 4, 9, 13) > 0.3)
    allowed = torch.rand(1, 1, 9, 13) > 0.2
    names = ("entropy", "max", "mean_position", "spread", "received", "uniform")
    theirs = {name: value[0].numpy() for name, value in statistics.measure(weights, allowed, names).items()}
    ours = weights[0].numpy()
    base = curves.baseline(allowed[0, 0].numpy(), 9, 13)
    assert curves.entropy(ours) == pytest.approx(theirs["entropy"])
    assert curves.sharpness(ours).largest == pytest.approx(theirs["max"])
    assert curves.focus(ours).mean == pytest.approx(theirs["mean_position"])
    assert curves.focus(ours).spread == pytest.approx(theirs["spread"])
    assert base == pytest.approx(theirs["uniform"][0])
    assert curves.received(ours, allowed[0, 0].numpy()) == pytest.approx(theirs["received"] / theirs["uniform"])


def test_the_sink_is_special_tokens_and_punctuation_and_the_first_key_only_where_it_is_special():
    axis = Text.of(["Tom", ",", "run", "…!", "<eos>", "C++"], special=(4,))
    assert curves.sinks(axis) == (1, 3, 4)
    weights = np.array([[0.1, 0.2, 0.3, 0.1, 0.2, 0.1]])
    assert curves.sink(weights, curves.sinks(axis)).tolist() == pytest.approx([0.5])
    assert curves.sink(weights, ()).tolist() == [0.0]
    assert curves.sink(weights, (0, 0)).tolist() == pytest.approx([0.1])


def test_other_axes_have_the_sinks_that_they_name():
    assert curves.sinks(Image(grid=(2, 2), size=(8, 8), prefix=("CLS", "register"))) == (0, 1)
    assert curves.sinks(Audio(5, 0.1)) == curves.sinks(Index(4)) == ()


def test_diagonality_is_one_on_the_diagonal_and_zero_in_the_far_corners():
    assert curves.diagonality(np.eye(7)) == 1
    assert curves.diagonality(np.eye(2)[::-1]) == 0
    assert curves.diagonality(np.ones((1, 1))) == 1
    assert curves.diagonality(np.full((201, 201), 1 / 201)) == pytest.approx(0.55, abs=0.01)
    by_hand = np.mean([0 / 2, (0.5 * 1 + 0.5 * 0) / 1, (0.2 * 2 + 0.2 * 1) / 2])
    assert curves.diagonality(WEIGHTS) == pytest.approx(1 - by_hand)


def test_the_diagonal_of_a_long_matrix_runs_from_corner_to_corner():
    assert curves.diagonal(3, 9).tolist() == [0, 4, 8]
    assert curves.diagonal(1, 9).tolist() == [0]
    assert curves.diagonality(np.eye(9)[[0, 4, 8]]) == 1
    assert curves.distance(np.eye(9)[[0, 4, 6]]) == pytest.approx(2 / 3)
