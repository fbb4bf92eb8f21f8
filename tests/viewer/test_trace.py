"""A trace itself: what can be asked of it, and its doors to files, pages, figures and numbers."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.trace import AttentionMap, Example, Frame, Trace

HALF = np.array([[[1, 0], [0.5, 0.5]]], np.float32)


def trace():
    axes = {"s": Index(2), "t": Index(2)}
    attentions = (
        AttentionMap("own", "s", "s", HALF),
        AttentionMap("cross", "t", "s", HALF),
        AttentionMap("after", "t", "t", HALF),
    )
    return Trace("name", (Example(axes, attentions), Example(axes, ())))


def test_the_last_attention_over_another_axis_is_the_one_to_look_at():
    assert trace().attention().name == "cross"
    assert trace().attention("own").name == "own"
    assert Trace.from_arrays(HALF).attention().name == "attention"
    assert [attention_map.name for attention_map in trace().example().attentions] == ["own", "cross", "after"]


def test_what_is_not_there_is_said():
    with pytest.raises(KeyError, match="no attention of this trace is called 'x'; there are own, cross, after"):
        trace().attention("x")
    with pytest.raises(KeyError, match="example 1 of the trace 'name' has no attention"):
        trace().attention(example=1)
    with pytest.raises(IndexError, match="the trace 'name' has 2 examples, asked for number 2"):
        trace().example(2)
    with pytest.raises(KeyError, match="there is no curve 'loudness'; there are received, "):
        trace().strength("loudness")


def test_it_goes_to_a_file_and_comes_back(tmp_path):
    path = trace().save(tmp_path / "t.attn.safetensors")
    assert [attention_map.name for attention_map in Trace.load(path).example().attentions] == ["own", "cross", "after"]


def test_its_numbers_are_arrays():
    assert trace().strength().tolist() == [[1.5, 0.5]]  # column sums, and two queries over two keys give 1 each
    np.testing.assert_allclose(trace().entropy(), [[0, np.log(2)]], atol=1e-6)
    own = np.array([[1, 0], [0.25, 0.75]])  # (W + I) / 2
    np.testing.assert_allclose(trace().rollout(("s", "s")), own)
    np.testing.assert_allclose(trace().rollout(), HALF[0] @ own)
    np.testing.assert_allclose(trace().flow(("s", "s")), own)


def test_its_page_is_one_file(tmp_path):
    path = trace().to_html(tmp_path / "t.html", budget="1MB", state="#a=own", language="zh")
    page = path.read_text(encoding="utf-8")
    assert '"state":"#a=own"' in page
    assert '"language":"zh"' in page


def test_its_figure_is_one_of_matplotlib():
    figures = pytest.importorskip("matplotlib.figure", reason="figures need matplotlib")
    assert isinstance(trace().figure("heatmap", attention="own"), figures.Figure)


def test_the_records_take_neither_torch_nor_matplotlib_to_import():
    code = "import sys, regard.viewer.io; print(sorted({'torch', 'matplotlib', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_repr_is_one_line_without_numbers_of_arrays():
    weights = np.full((2, 3, 4), 0.25)
    traced = Trace.from_arrays(weights, name="cross")
    assert repr(traced) == "Trace('cross', 1 example, 1 attention)"
    frames = tuple(Frame(step, None, {"cross": weights}) for step in range(5))
    filmed = dataclasses.replace(traced, examples=traced.examples * 2, training=frames)
    assert repr(filmed) == "Trace('cross', 2 examples, 2 attentions, 5 training frames)"
    assert "\n" not in repr(traced.example())
    assert "array" not in repr(traced.example())
