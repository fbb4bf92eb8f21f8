"""Every rule of a trace, broken one at a time: what is said names the first offender."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from regard.viewer.axes import Audio, Image, Index, Series, Text
from regard.viewer.file.check import TraceError, check
from regard.viewer.trace import Beams, Choice, Edge, Example, Frame, Graph, Look, Node, Trace

AXES = {"source": Text.of(["Tom", "chases", "Jerry"]), "target": Text.of(["汤姆", "追逐"])}
WEIGHTS = np.array([[[0.5, 0.25, 0.25], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]]], np.float32)
LOOK = Look("cross", "target", "source", WEIGHTS)
BEAMS = Beams(
    parents=np.array([[0, 0], [1, -1]], np.int32),
    tokens=(("汤姆", "汤"), ("追逐", "")),
    scores=np.array([[-0.5, -1.0], [-1.5, 0]], np.float32),
    ended=np.array([[False, False], [True, False]]),
    best=(1, 0),
    name="cross",
    weights=np.full((2, 2, 3), 1 / 3, np.float32),
)


def forced(record, **parts):
    """A record with parts of the wrong type, as Python lets people write them; the tests' own type checker would not."""
    wrong = copy(record)
    for name, value in parts.items():
        object.__setattr__(wrong, name, value)
    return wrong


def trace(look=LOOK, axes=AXES, **parts):
    return Trace("t", (Example(axes, (look,), **parts),))


def changed(head, query, key, value):
    weights = WEIGHTS.copy()
    weights[head, query, key] = value
    return replace(LOOK, weights=weights)


def refuses(broken, *said):
    with pytest.raises(TraceError) as caught:
        check(broken)
    for part in said:
        assert part in str(caught.value)


def test_a_good_trace_passes():
    check(trace(steps=(Choice(0, "汤姆", -0.5, (("汤", -1.0),)),), beams=BEAMS))


def test_a_trace_error_is_a_value_error():
    assert issubclass(TraceError, ValueError)


def test_a_trace_without_examples_is_none():
    refuses(Trace("t", ()), "'t' has no example")


def test_a_trace_may_have_no_attention():
    check(Trace("t", (Example(AXES, (), steps=(Choice(1, "x", -1.0),)),)))


@pytest.mark.parametrize(
    ("look", "said"),
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
        (replace(LOOK, statistics={"received": np.ones((2, 2))}), "the statistic 'received' must be of shape (2, 3) or (3,)"),
        (replace(LOOK, statistics={"max": np.array([[1, 1], [1, np.nan]])}), "head 1, place 1: the statistic 'max' must be a finite number"),
        (replace(LOOK, statistics={"uniform": np.array([1, np.inf, 1])}), "place 1: the statistic 'uniform' must be a finite number"),
    ],
)  # fmt: skip
def test_what_an_attention_must_be(look, said):
    refuses(trace(look), said)


def test_columns_that_sum_to_one_are_told_from_rows():
    square = np.array([[[0.75, 0.5], [0.25, 0.5]]], np.float32)
    axes = {"tokens": Index(2)}
    refuses(
        trace(Look("own", "tokens", "tokens", square), axes),
        "head 0, query 0: weights must sum to 1, these sum to 1.25",
        "its columns do: the layout is",
    )


def test_a_quick_check_leaves_out_sums_but_not_numbers():
    check(trace(changed(1, 1, 2, 0.5)), quick=True)
    with pytest.raises(TraceError, match="finite"):
        check(trace(changed(1, 1, 2, np.nan)), quick=True)


def test_rows_of_half_precision_may_be_off_by_rounding():
    thirds = np.full((1, 1, 2000), 1 / 2000, np.float16)
    check(trace(Look("a", "q", "k", thirds), {"q": Index(1), "k": Index(2000)}))


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


def test_names_of_attentions_are_their_own():
    refuses(Trace("t", (Example(AXES, (LOOK, LOOK)),)), "example 0: two attentions are called 'cross'")


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (Text(("a", "b"), "a b", ((0, 1),)), "2 pieces need as many spans, got 1"),
        (Text(("a",), "a", ((0, 2),)), "piece 0: its span (0, 2) does not lie within the 1 characters"),
        (Text(("a",), "a", ((0, 1),), special=(1,)), "place 1 is called special, and there are 1 pieces"),
        (Text((), "", ()), "an axis has 1 to 16,777,216 places, this one 0"),
        (forced(Text.of(["a"]), pieces=(3,)), "piece 0: needs a text, got 3"),
        (forced(Text.of(["a"]), text=3), "text: needs a text, got 3"),
        (Text.of(["a"], lang=""), "lang: needs a text of at least one letter"),
        (Index(0), "this one 0"),
        (Index(-1), "this one -1"),
        (Index(10**12), "this one 1,000,000,000,000"),
        (Audio(3, 0.0), "seconds_per_step must be above 0, got 0.0"),
        (Audio(3, 0.1, spectrogram=np.ones(3)), "a spectrogram is (bins, frames), got (3,)"),
        (Audio(3, 0.1, spectrogram=np.full((1, 1), np.nan)), "bin 0, frame 0: a spectrogram's value must be a finite number"),
        (Audio(3, 0.1, sound=np.ones(3)), "sound and its rate"),
        (Audio(3, 0.1, sound=np.ones(3, np.int16), rate=8000), "sound is floats from -1 to 1, got int16; divide int16 by 32768"),
        (Audio(3, 0.1, sound=np.ones((3, 2)), rate=8000), "sound is one channel, (samples,), got (3, 2)"),
        (Audio(3, 0.1, sound=np.ones(3), rate=0), "the rate of a sound must be above 0, got 0"),
        (Audio(3, 0.1, sound=np.array([0, np.nan]), rate=8), "sample 1: a sample must be a finite number"),
        (Image((0, 2), (4, 4)), "a picture's grid and size are 1 or more"),
        (Image((1, 3), (4, 4), pixels=np.zeros((4, 4, 3))), "pixels must be uint8, 0 to 255, got float64"),
        (Image((1, 3), (4, 4), pixels=np.zeros((4, 5, 3), np.uint8)), "pixels (height, width, 3) must be (4, 4, 3)"),
        (forced(Image((1, 3), (4, 4)), prefix=(3,)), "prefix 0: needs a text"),
        (Series(np.ones((3, 1)), np.ones((3, 1)), ("load",)), "times are one number for each moment"),
        (Series(np.ones(3), np.ones((2, 1)), ("load",)), "values (moments, names) must be (3, 1) to fit the axes, got (2, 1)"),
        (Series(np.array([0, np.nan, 2]), np.ones((3, 1)), ("load",)), "moment 1: a time must be a finite number"),
        (Series(np.ones(3), np.full((3, 1), np.inf), ("load",)), "a moment without a measurement is NaN"),
        (forced(Series(np.ones(3), np.ones((3, 1)), ("load",)), names=(3,)), "name 0: needs a text"),
        (Series(np.ones(3), np.ones((3, 1)), ("load",), split=4), "forecasts begin at moment 4, and there are 3"),
        ("source", "needs Text, Audio, Image, Series or Index, got str"),
    ],
)  # fmt: skip
def test_what_an_axis_must_be(axis, said):
    example = forced(Example(AXES, (LOOK,)), axes={**AXES, "other": axis})
    refuses(Trace("t", (example,)), "example 0, axis 'other'", said)


def test_a_series_may_have_gaps():
    check(trace(axes={**AXES, "days": Series(np.arange(2.0), np.array([[np.nan], [1.0]]), ("load",))}))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Choice(2, "x", -1.0), "example 0, step 0: it belongs to query 2, and the longest query axis has 2 places"),
        (Choice(0, "x", float("nan")), "the log-probability of 'x' must be a finite number, got nan"),
        (Choice(0, "x", -1.0, (("y", float("-inf")),)), "the log-probability of 'y' must be a finite number, got -inf"),
        (forced(Choice(0, "x", -1.0), token=7), "step 0, token: needs a text, got 7"),
    ],
)
def test_what_a_step_must_be(step, said):
    refuses(trace(steps=(step,)), said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parents": np.zeros(2, np.int32)}, "parents are (steps, width), got (2,)"),
        ({"parents": np.zeros((2, 2))}, "parents must be whole numbers with a sign, got float64"),
        ({"parents": np.array([[0, -1], [1, -1]])}, "step 1, row 0: its parent, row 1 of the step before, does not exist"),
        ({"parents": np.array([[0, 0], [2, -1]])}, "step 1, row 0: its parent, row 2"),
        ({"parents": np.array([[0, 0], [0, -2]])}, "step 1, row 1: a parent is a row, or -1 for nobody, got -2"),
        ({"scores": np.zeros((2, 3), np.float32)}, "scores (steps, width) must be (2, 2)"),
        ({"scores": np.array([[0, np.nan], [0, 0]], np.float32)}, "step 0, row 1: a score must be a finite number, got nan"),
        ({"tokens": (("a", "b"),)}, "tokens must be 2 steps of 2 rows"),
        ({"tokens": (("a", 3), ("b", ""))}, "beams, token: needs a text, got 3"),
        ({"ended": np.zeros((2, 2))}, "ended must be boolean, got float64"),
        ({"best": (1, 1)}, "the best answer is said to end at step 1, row 1, and nothing is there"),
        ({"best": (2, 0)}, "to end at step 2, row 0"),
        ({"name": "self"}, "their weights are of the attention 'self'; the example has cross"),
        ({"weights": np.ones((2, 2, 2), np.float32)}, "weights (steps, width, source) must be (2, 2, 3)"),
        ({"weights": np.full((2, 2, 3), np.nan, np.float32)}, "step 0, row 0, key 0: a weight must be a finite number"),
    ],
)  # fmt: skip
def test_what_beams_must_be(change, said):
    refuses(trace(beams=forced(BEAMS, **change)), "example 0, beams", said)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (Frame(-1, None, {}), "training frame 0: its step must be 0 or more"),
        (Frame(1, float("nan"), {}), "its loss must be a finite number or None, got nan"),
        (Frame(1, 0.5, {}, example=1), "it shows example 1, and the trace has 1 examples"),
        (Frame(1, 0.5, {"self": WEIGHTS}), "example 0 has no attention 'self'; it has cross"),
        (Frame(1, 0.5, {"cross": WEIGHTS[:1]}), "training frame 0, attention 'cross': weights (heads, target, source) must be (2, 2, 3)"),
        (Frame(1, 0.5, {"cross": WEIGHTS * np.float32(np.nan)}), "head 0, query 0, key 0: a weight must be a finite number"),
    ],
)  # fmt: skip
def test_what_a_frame_of_training_must_be(frame, said):
    refuses(replace(trace(), training=(frame,)), said)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (Graph((Node("a", "x"), Node("a", "y"))), "two nodes are called 'a'"),
        (Graph((Node("a", "x", parent="b"),)), "node 'a': its parent 'b' is not a node"),
        (Graph((Node("a", "x"),), (Edge("a", "c", (1,)),)), "edge 'a' -> 'c': 'c' is not a node"),
        (Graph((Node("a", "x", about={"kernel": None}),)), "node 'a', 'kernel': needs a text or a finite number, got None"),
        (Graph((Node("", "x"),)), "the id of a node: needs a text of at least one letter"),
    ],
)
def test_what_a_network_must_be(graph, said):
    refuses(replace(trace(), graph=graph), "network", said)


def test_notes_and_names_are_texts():
    refuses(forced(trace(), notes=(3,)), "note 0: needs a text, got 3")
    refuses(forced(trace(), name=None), "the trace's name: needs a text, got None")
    refuses(Trace("t", (forced(Example(AXES, (LOOK,)), title=4),)), "example 0, title: needs a text, got 4")
