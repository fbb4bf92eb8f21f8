import numpy as np
import pytest

from regard.data.axis import Index, Text
from regard.viewer.metrics import curves
from regard.viewer.metrics.strength import summary
from regard.viewer.trace import AttentionMap

AXES = {"src": Text.of(["a", "b", "<eos>"], special=(2,)), "places": Index(100)}
CAUSAL = np.tril(np.ones((3, 3), bool))
WEIGHTS = np.array([[[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]], np.eye(3)], np.float32)


def attention_map(**given):
    return AttentionMap("encoder.0", "src", "src", **({"weights": WEIGHTS} | given))


def test_a_look_is_summed_up_by_head():
    found = summary(attention_map(allowed=CAUSAL), AXES)
    assert found.received == pytest.approx(curves.received(WEIGHTS, CAUSAL))
    assert found.baseline == pytest.approx([11 / 6, 5 / 6, 1 / 3])
    assert found.largest.tolist() == [[1, 0.5, pytest.approx(0.6)], [1, 1, 1]]
    assert found.sinks == (2,)
    assert found.sink == pytest.approx(WEIGHTS[..., 2])
    assert found.mass == pytest.approx([0.2, 1 / 3])
    assert found.entropy == pytest.approx(curves.entropy(WEIGHTS).mean(-1))
    assert found.distance == pytest.approx(curves.distance(WEIGHTS))
    assert found.diagonality == pytest.approx(curves.diagonality(WEIGHTS))


def test_curves_and_numbers_are_what_a_page_takes():
    found = summary(attention_map(), AXES)
    assert {name: curve.shape for name, curve in found.curves.items()} == {
        "received": (2, 3), "baseline": (3,), "largest": (2, 3), "effective": (2, 3), "focus": (2, 3), "spread": (2, 3), "sink": (2, 3),
    }  # fmt: skip
    assert all(curve.dtype == np.float32 for curve in found.curves.values())
    assert found.numbers["diagonality"][1] == 1
    assert set(found.numbers) == {"entropy", "sink", "distance", "diagonality", "alignment"}
    assert found.numbers["alignment"] == [None, None]


def test_only_recorded_rows_count_for_the_baseline_and_the_others_are_unknown():
    found = summary(attention_map(weights=WEIGHTS[:, [0, 2]], rows=(0, 2), allowed=CAUSAL), AXES)
    assert found.baseline == pytest.approx([1 + 1 / 3, 1 / 3, 1 / 3])
    assert found.received[0] == pytest.approx([1.2 / (4 / 3), 0.2 * 3, 0.6 * 3])
    assert np.isnan(found.largest[:, 1]).all()
    assert np.isfinite(found.largest[:, [0, 2]]).all()
    assert found.mass == pytest.approx([0.6 / 2, 1 / 2])
    assert found.diagonality[1] == 1
    rows_alone = summary(attention_map(weights=WEIGHTS[:, [0, 2]], rows=(0, 2), allowed=CAUSAL[[0, 2]]), AXES)
    assert rows_alone.received == pytest.approx(found.received)


def test_each_head_may_have_a_mask_of_its_own():
    allowed = np.stack([CAUSAL, np.eye(3, dtype=bool)])
    found = summary(attention_map(allowed=allowed), AXES)
    assert found.received == pytest.approx(np.stack([curves.received(WEIGHTS[0], CAUSAL), np.ones(3)]))
    assert found.baseline == pytest.approx((np.array([11 / 6, 5 / 6, 1 / 3]) + 1) / 2)


def test_what_was_measured_while_the_model_ran_comes_first():
    measured = {"max": np.full((2, 3), 0.125), "entropy": np.full((2, 3), np.log(8))}
    found = summary(attention_map(statistics=measured), AXES)
    assert (found.largest == 0.125).all()
    assert found.effective == pytest.approx(np.full((2, 3), 8))
    assert found.focus == pytest.approx(curves.focus(WEIGHTS).mean)


def test_statistics_alone_give_every_curve_but_the_sinks_and_still_the_sinks_mean():
    measured = {
        "entropy": curves.entropy(WEIGHTS), "max": WEIGHTS.max(-1), "mean_position": curves.focus(WEIGHTS).mean,
        "spread": curves.focus(WEIGHTS).spread, "received": WEIGHTS.sum(1),
    }  # fmt: skip
    whole = summary(attention_map(allowed=CAUSAL), AXES)
    found = summary(attention_map(weights=None, statistics=measured, allowed=CAUSAL), AXES)
    for name in ("received", "baseline", "largest", "effective", "focus", "spread", "mass", "entropy", "distance"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), abs=1e-6), name
    assert np.isnan(found.sink).all()
    assert found.numbers["diagonality"] == [None, None]
    uniform = summary(attention_map(weights=None, statistics=measured | {"uniform": np.full((2, 3), 2.0)}), AXES)
    assert uniform.received == pytest.approx(WEIGHTS.sum(1) / 2)


def test_a_query_that_may_see_nothing_is_told_from_one_that_sees_one_key():
    measured = {"entropy": np.zeros((1, 3)), "max": np.array([[0.0, 1, 1]])}
    found = summary(attention_map(weights=None, statistics=measured), AXES)
    assert found.effective.tolist() == [[0, 1, 1]]


def test_weights_that_do_not_sum_to_one_keep_their_sums_and_share_their_sinks():
    found = summary(attention_map(weights=3 * WEIGHTS, sums_to_one=False), AXES)
    assert found.received == pytest.approx(3 * curves.received(WEIGHTS))
    assert found.mass == pytest.approx([0.2, 1 / 3])


def test_long_matrices_are_worked_in_blocks_without_a_seam():
    weights = np.random.default_rng(0).dirichlet(np.full(100, 0.1), (2, 100)).astype(np.float16)
    found = summary(AttentionMap("long", "places", "places", weights), AXES)
    assert found.received == pytest.approx(curves.received(weights))
    assert found.spread == pytest.approx(curves.focus(weights).spread)
    assert found.diagonality == pytest.approx(curves.diagonality(weights))
    assert found.sink == pytest.approx(0)


def test_a_look_without_weights_and_statistics_is_refused():
    with pytest.raises(ValueError, match=r"'encoder.0' recorded neither weights nor statistics"):
        summary(attention_map(weights=None), AXES)


def test_a_mean_over_queries_of_which_nothing_was_recorded_is_no_number():
    alone = summary(attention_map(weights=None, statistics={"received": np.ones((2, 3), np.float32)}), AXES)
    assert alone.received.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert all(values == [None, None] for values in alone.numbers.values())
    blind = summary(attention_map(weights=np.zeros((2, 3, 3), np.float32), allowed=np.zeros((3, 3), bool)), AXES)
    assert blind.numbers["entropy"] == [0, 0]  # recorded, and nothing was read


def test_a_baseline_may_be_one_for_all_heads():
    statistics = {"received": np.array([[3.0, 0, 0], [1, 1, 1]]), "uniform": np.array([1.5, 1, 0.5])}
    found = summary(attention_map(weights=None, statistics=statistics), AXES)
    assert found.baseline.tolist() == [1.5, 1, 0.5]
    assert found.received.tolist() == [[2, 0, 0], [pytest.approx(2 / 3), 1, 2]]
