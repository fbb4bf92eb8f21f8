import itertools

import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.metrics import rollout
from regard.viewer.metrics.flow import flow, maximum, of, pairs
from regard.viewer.trace import AttentionMap, Example, Trace


def softmax(*shape, seed=0):
    weights = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return weights / weights.sum(-1, keepdims=True)


def cut(mixed, query, key):
    """The smallest cut between two tokens, by trying every set of nodes: what a maximum flow must equal."""
    between = [(level, place) for level in range(1, len(mixed)) for place in range(mixed[level - 1].shape[0])]
    best = np.inf
    for choice in itertools.product((False, True), repeat=len(between)):
        above = dict(zip(between, choice, strict=True))
        above |= {(len(mixed), place): place == query for place in range(mixed[-1].shape[0])}
        above |= {(0, place): place != key for place in range(mixed[0].shape[1])}  # other inputs lead nowhere
        crossing = 0.0
        for level, layer in enumerate(mixed):
            for i, j in itertools.product(*map(range, layer.shape)):
                if above[level + 1, i] and not above[level, j]:
                    crossing += layer[i, j]
        best = min(best, crossing)
    return best


def test_one_layer_flows_as_wide_as_its_pipes():
    weights = softmax(2, 4, 4)
    assert flow([weights]) == pytest.approx(rollout.mixing(weights))


def test_two_layers_of_three_tokens_are_worked_by_hand():
    first = np.array([[1, 0, 0], [0.25, 0.75, 0], [0, 0.25, 0.75]])
    second = np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    by_hand = [
        [0.5 + 0.25, 0.5, 0],  # through the first token min(.5, 1), through the second min(.5, .25); then min(.5, .75)
        [0.25, 0.75, 0],
        [0, 0.25, 0.75],
    ]
    assert pairs([first, second]) == pytest.approx(np.array(by_hand))


def test_between_two_layers_flow_is_the_sum_of_the_narrower_pipes():
    first, second = softmax(1, 5, 5, seed=1), softmax(1, 5, 5, seed=2)
    below, above = rollout.mixing(first), rollout.mixing(second)
    assert flow([first, second]) == pytest.approx(np.minimum(above[:, :, None], below[None]).sum(1))


@pytest.mark.parametrize("seed", range(3))
def test_flow_equals_the_smallest_cut(seed):
    mixed = [rollout.mixing(softmax(1, 3, 3, seed=3 * seed + layer) ** 3) for layer in range(4)]
    found = pairs(mixed)
    for query, key in itertools.product(range(3), range(3)):
        assert found[query, key] == pytest.approx(cut(mixed, query, key))


def test_a_path_that_was_taken_too_soon_is_given_back():
    room = np.zeros((6, 6))
    for start, end in [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 5), (4, 5)]:
        room[start, end] = 1
    room[1, 3] = 2  # the widest pipe leads the first path where only the second could go
    assert maximum(room, 0, 5) == 2


def test_the_last_layer_may_cross_to_another_axis():
    cross, encoder = softmax(2, 3, 4), softmax(2, 4, 4, seed=1)
    attentions = (AttentionMap("encoder", "src", "src", encoder), AttentionMap("cross", "tgt", "src", cross))
    trace = Trace("tiny", (Example({"src": Index(4), "tgt": Index(3)}, attentions),))
    expected = np.minimum(cross.mean(0)[:, :, None], rollout.mixing(encoder)[None]).sum(1)
    assert of(trace) == pytest.approx(expected)
    assert of(trace, ("src", "src")) == pytest.approx(rollout.mixing(encoder))


def test_long_sequences_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match="stops at 64 of them, got 65; rollout has no limit, or give limit=65 and time"):
        flow([np.ones((1, 65, 65)) / 65])
    with pytest.raises(ValueError, match="stops at 2 of them, got 3"):
        flow([np.ones((1, 3, 3)) / 3], limit=2)
    with pytest.raises(ValueError, match="flow needs at least one layer, got none"):
        flow([])
