"""What a figure is of: which attention, which head, which rows."""

from dataclasses import replace

import numpy as np
import pytest

from regard.viewer.figure.style import WIDTHS
from regard.viewer.figure.subject import Subject, allowed, matrix
from regard.viewer.trace import AttentionMap

from .traces import causal, network, translation

WEIGHTS = np.array([[[1, 0], [0.5, 0.5]], [[0.5, 0.5], [0, 1]]], np.float16)
LOOK = AttentionMap("a", "q", "k", WEIGHTS)


def subject(trace, **given):
    plain = {"number": 0, "attention": None, "head": None, "width": WIDTHS["column"], "palette": "cividis", "text": "text"}
    return Subject(trace, **(plain | given))


def test_without_a_head_it_is_the_mean_of_all_in_float32():
    assert matrix(LOOK, None).tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert matrix(LOOK, 1).tolist() == [[0.5, 0.5], [0, 1]]
    assert matrix(LOOK, None).dtype == matrix(LOOK, 1).dtype == np.float32


@pytest.mark.parametrize("head", [2, -1])
def test_a_head_that_is_not_there_is_refused(head):
    with pytest.raises(ValueError, match=f"'a' has 2 heads, counted from 0; asked for head {head}"):
        matrix(LOOK, head)


def test_the_mean_may_look_where_any_head_may_and_only_recorded_rows_are_asked():
    heads = np.array([[[True, False], [True, True]], [[True, True], [False, True]]])
    each = replace(LOOK, allowed=heads)
    assert allowed(LOOK, None, 2) is None
    assert allowed(each, None, 2).tolist() == [[True, True], [True, True]]
    assert allowed(each, 1, 2).tolist() == [[True, True], [False, True]]
    assert allowed(replace(each, rows=(1,)), 1, 2).tolist() == [[False, True]]
    assert allowed(replace(LOOK, allowed=np.tri(2, dtype=bool), rows=(0,)), None, 2).tolist() == [[True, False]]


def test_a_subject_knows_its_axes_rows_layers_and_words():
    add_metadata = subject(translation(rows=(1, 3), weights=np.full((2, 2, 5), 0.2, np.float32)), head=1)
    assert (add_metadata.queries.labels[0], add_metadata.keys.labels[0]) == ("汤姆", "Tom")
    assert add_metadata.rows == [1, 3]
    assert add_metadata.matrix.shape == (2, 5)
    assert add_metadata.title == "tiny: decoder.cross, head 1"
    assert subject(translation()).title == "tiny: decoder.cross, mean of heads"
    assert subject(translation()).rows == [0, 1, 2, 3]
    deep = subject(causal(layers=3), attention="decoder.1.self")
    assert deep.attention_map.name == "decoder.1.self"
    assert [attention_map.layer for attention_map in deep.layers] == [0, 1, 2]


def test_only_the_wide_figure_fills_the_page():
    assert [subject(translation(), width=width).page for width in WIDTHS.values()] == [name == "page" for name in WIDTHS]


def test_without_attentions_there_is_nothing_to_look_at_but_a_drawing_can_begin():
    bare = subject(network())
    with pytest.raises(ValueError, match="example 0 of the trace 'network' has no attention to draw; 'graph' needs none"):
        _ = bare.attention_map
    with bare.drawing(2.0) as drawing:
        assert drawing is not None
