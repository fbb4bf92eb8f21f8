"""What must hold of a trace as a whole: its examples, its film, its network, its names. The first offender is named."""

from dataclasses import replace

import numpy as np
import pytest

from regard.viewer.io.check import TraceError, check
from regard.viewer.trace import Choice, Edge, Example, Frame, Graph, Node, Trace

from .traces import AXES, BEAMS, LOOK, WEIGHTS, changed, forced, refuses, trace


def test_a_good_trace_passes():
    check(trace(steps=(Choice(0, "汤姆", -0.5, (("汤", -1.0),)),), beams=BEAMS))


def test_a_trace_without_examples_is_none():
    refuses(Trace("t", ()), "'t' has no example")


def test_a_trace_may_have_no_attention():
    check(Trace("t", (Example(AXES, (), steps=(Choice(1, "x", -1.0),)),)))


def test_a_quick_check_leaves_out_sums_but_not_numbers():
    check(trace(changed(1, 1, 2, 0.5)), quick=True)
    with pytest.raises(TraceError, match="finite"):
        check(trace(changed(1, 1, 2, np.nan)), quick=True)


def test_names_of_attentions_are_their_own():
    refuses(Trace("t", (Example(AXES, (LOOK, LOOK)),)), "example 0: two attentions are called 'cross'")


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


def test_frames_have_the_rows_that_were_recorded():
    rows = replace(LOOK, weights=WEIGHTS[:, :1], rows=(0,))
    check(Trace("t", (Example(AXES, (rows,)),), training=(Frame(1, 0.5, {"cross": WEIGHTS[:, :1]}),)))
    refuses(
        Trace("t", (Example(AXES, (rows,)),), training=(Frame(1, 0.5, {"cross": WEIGHTS}),)),
        "weights (heads, target, source) must be (2, 1, 3)",
    )
