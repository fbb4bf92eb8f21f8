import numpy as np

from regard.data.axis import Index, Text
from regard.viewer.html.summary import told
from regard.viewer.trace import Example, Look, Trace

AXES = {"target": Text.of(["汤姆", "追"]), "source": Text.of(["Tom", "chases", "Jerry"])}


def test_three_lines_say_what_it_is_what_was_found_and_how_it_was_recorded():
    weights = np.array([[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3]]], np.float32)
    trace = Trace("run", (Example(AXES, (Look("decoder.cross", "target", "source", weights, source="reference"),)),))
    assert told([trace]).split("\n") == [
        "run: 1 example, 1 attention",
        "decoder.cross: '汤姆' reads mostly 'Tom', 0.90",
        "decoder.cross: reference, which forms its weights",
    ]


def test_statistics_alone_are_told_in_effective_keys():
    look = Look("a", "q", "k", None, statistics={"entropy": np.log(np.full((1, 2), 2.5))})
    lines = told([Trace("run", (Example({"q": Index(2), "k": Index(3)}, (look,)),))]).split("\n")
    assert lines[1] == "a spreads over 2.5 keys on average; only statistics were recorded"


def test_a_trace_without_attention_says_so():
    assert "no attention was recorded" in told([Trace("none", (Example(AXES, ()),))])
