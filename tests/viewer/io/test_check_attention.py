"""Every rule of an attention, broken one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.io.check import check
from regard.viewer.io.check_attention import heads_of, tolerance
from regard.viewer.trace import AttentionMap

from .traces import LOOK, WEIGHTS, changed, forced, refuses, trace


@pytest.mark.parametrize(
    ("attention_map", "said"),
    [
        (changed(1, 1, 2, np.nan), "example 0, attention 'cross', head 1, query 1, key 2: a weight must be a finite number, got nan"),
        (changed(0, 1, 0, np.inf), "head 0, query 1, key 0: a weight must be a finite number, got inf"),
        (changed(1, 1, 0, -1.0), "head 1, query 1, key 0: a weight of an attention that sums to one cannot be negative, got -1"),
        (changed(1, 1, 2, 0.5), "example 0, attention 'cross', head 1, query 1: weights must sum to 1, these sum to 0.5; else say sums_to_one=False"),
        (replace(LOOK, weights=WEIGHTS[:, :1]), "attention 'cross': weights (heads, target, source) must be (2, 2, 3) to fit the axes, got (2, 1, 3)"),
        (replace(LOOK, weights=WEIGHTS.transpose(0, 2, 1)), "weights must be (heads, queries, keys) = (2, 2, 3), these have keys before queries"),
        (replace(LOOK, weights=WEIGHTS.astype(np.float64)), "weights must be float16 or float32, got float64"),
        (replace(LOOK, query="middle"), "its query axis is 'middle', and the example has the axes source, target"),
        (replace(LOOK, layer=-1), "the layer must be 0 or more, got -1"),
        (replace(LOOK, weights=None), "neither weights nor statistics were recorded"),
        (replace(LOOK, name=""), "the name of an attention: needs a text of at least one letter, got ''"),
        (forced(LOOK, source=3), "source: needs a text, got 3"),
        (replace(LOOK, allowed=np.ones((2, 3))), "allowed must be boolean"),
        (replace(LOOK, allowed=np.ones((3, 2), bool)), "allowed must be (queries, keys) = (2, 3) or (heads, queries, keys) = (2, 2, 3), got (3, 2)"),
        (replace(LOOK, allowed=np.tri(2, 3, dtype=bool)), "head 0, query 0, key 1: what is not allowed must have weight 0, got 0.25"),
        (replace(LOOK, weights=WEIGHTS[:, :1], rows=(2,)), "row 2 was recorded, and the axis 'target' has 2 places, 0 to 1"),
        (replace(LOOK, rows=(1, 0)), "rows must name each recorded query once, in order, got (1, 0)"),
        (replace(LOOK, scores=WEIGHTS[0]), "scores (heads, target, source) must be (2, 2, 3)"),
        (replace(LOOK, scores=np.full_like(WEIGHTS, np.nan)), "head 0, row 0, key 0: a score must be a number or -inf, got nan"),
        (replace(LOOK, values=np.ones((2, 2), np.float32)), "values (heads, source) must be (2, 3)"),
        (replace(LOOK, values=np.full((2, 3), np.nan, np.float32)), "head 0, key 0: a value's length must be a finite number"),
        (replace(LOOK, statistics={"entropy": np.ones((2, 3))}), "the statistic 'entropy' must be of shape (2, 2) to fit the axes, got (2, 3)"),
        (replace(LOOK, statistics={"received": np.ones((2, 2))}), "the statistic 'received' must be of shape (2, 3) to fit the axes, got (2, 2)"),
        (replace(LOOK, statistics={"received": np.ones(3)}), "the statistic 'received' must be of shape (2, 3) to fit the axes, got (3,)"),
        (replace(LOOK, statistics={"max": np.array([[1, 1], [1, np.nan]])}), "head 1, place 1: the statistic 'max' must be a finite number"),
        (replace(LOOK, statistics={"uniform": np.array([1, np.inf, 1])}), "place 1: the statistic 'uniform' must be a finite number"),
    ],
)  # fmt: skip
def test_what_an_attention_must_be(attention_map, said):
    refuses(trace(attention_map), said)


def test_columns_that_sum_to_one_are_told_from_rows():
    square = np.array([[[0.75, 0.5], [0.25, 0.5]]], np.float32)
    axes = {"tokens": Index(2)}
    refuses(
        trace(AttentionMap("own", "tokens", "tokens", square), axes),
        "head 0, query 0: weights must sum to 1, these sum to 1.25",
        "its columns do: the layout is",
    )


def test_rows_of_half_precision_may_be_off_by_rounding():
    thirds = np.full((1, 1, 2000), 1 / 2000, np.float16)
    check(trace(AttentionMap("a", "q", "k", thirds), {"q": Index(1), "k": Index(2000)}))


def test_a_query_that_may_see_nothing_has_zeros():
    weights = np.array([[[1, 0, 0], [0, 0, 0]]], np.float32)
    allowed = np.array([[True, True, True], [False, False, False]])
    check(trace(replace(LOOK, weights=weights, allowed=allowed)))
    refuses(trace(replace(LOOK, weights=weights)), "query 1: weights must sum to 1, these sum to 0")


def test_an_attention_that_does_not_sum_to_one_may_have_any_numbers():
    check(trace(replace(LOOK, weights=WEIGHTS * -3, sums_to_one=False)))


def test_chosen_rows_are_named_by_their_place_on_the_axis():
    check(trace(replace(LOOK, weights=WEIGHTS[:, 1:], rows=(1,), allowed=np.ones((2, 3), bool))))
    refuses(
        trace(replace(changed(0, 1, 0, 0.5), weights=changed(0, 1, 0, 0.5).weights[:, 1:], rows=(1,))),
        "head 0, query 1: weights must sum to 1",
    )


def test_statistics_alone_are_enough_and_unknown_ones_may_be_there():
    found = {"entropy": np.ones((2, 2)), "received": np.ones((2, 3)), "uniform": np.ones(3), "top_3": np.ones((2, 2, 3))}
    check(trace(replace(LOOK, weights=None, statistics=found)))
    refuses(
        trace(replace(LOOK, statistics={"mine": np.ones(7)})),
        "the statistic 'mine' must be of shape (2, 2) or (2, 3) or (3,)",
    )


def test_scores_may_be_minus_infinity():
    check(trace(replace(LOOK, scores=np.full_like(WEIGHTS, -np.inf))))


def test_heads_are_counted_in_whatever_was_recorded():
    bare = replace(LOOK, weights=None)
    assert heads_of(LOOK) == 2
    assert heads_of(replace(bare, statistics={"uniform": np.ones(3), "max": np.ones((5, 2))})) == 5
    assert heads_of(replace(bare, values=np.ones((4, 3)))) == 4
    assert heads_of(replace(bare, statistics={"uniform": np.ones(3)})) == 0  # one line for all heads tells of none


def test_rows_of_eight_bits_may_be_off_by_more():
    assert tolerance(LOOK, 100) == pytest.approx(0.005 + 100 * 2.0**-24)
    assert tolerance(replace(LOOK, source="eight_bits; given"), 100) == pytest.approx(
        0.005 + 10 / 255 + 100 / 255**2, abs=1e-5
    )
