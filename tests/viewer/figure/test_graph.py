import itertools

import pytest
from matplotlib.patches import FancyBboxPatch

from regard.viewer.figure import figure
from regard.viewer.trace import Edge, Example, Graph, Node, Trace

from .traces import network, texts, translation


def boxes(drawn):
    return [patch for patch in drawn.axes[0].patches if isinstance(patch, FancyBboxPatch)]


def test_every_box_is_there_with_its_shape_and_attentions_are_marked():
    drawn = figure(network(), "graph")
    written = texts(drawn)
    assert {
        "source",
        "encoder.0.self  × 3",
        "encoder.0.feedforward  × 3",
        "4 heads, 1 × 9 × 64",
        "key, query, value",
    } <= set(written)
    edges = [box.get_linewidth() for box in boxes(drawn)]
    assert sorted(edges) == [0.5, 0.5, 0.5, 1.2]


def test_boxes_lie_within_the_page_and_apart():
    drawn = figure(network(layers=2), "graph", width="page")
    drawn.draw_without_rendering()
    extents = [box.get_window_extent() for box in boxes(drawn)]
    for one, other in itertools.combinations(extents, 2):
        assert not one.overlaps(other)
    for each in extents:
        assert each.x0 >= 0
        assert each.y0 >= 0
        assert each.x1 <= drawn.bbox.width
        assert each.y1 <= drawn.bbox.height


def test_what_is_written_fits_into_its_box():
    drawn = figure(network(), "graph")
    drawn.draw_without_rendering()
    extents = [box.get_window_extent() for box in boxes(drawn)]
    for text in drawn.axes[0].texts:
        if text.get_bbox_patch() is None:  # not the role of an arrow
            box = text.get_window_extent()
            assert any(each.x0 <= box.x0 and box.x1 <= each.x1 for each in extents), text.get_text()


def test_a_wide_network_is_made_smaller_until_it_fits():
    nodes = [Node("sum", "linear"), *(Node(f"{'long' * 6} input {number}", "input") for number in range(12))]
    edges = tuple(Edge(node.id, "sum", (1,)) for node in nodes[1:])
    drawn = figure(Trace("wide", (Example({}, ()),), Graph(tuple(nodes), edges)), "graph", boxes=99)
    drawn.draw_without_rendering()
    assert all(box.get_window_extent().x0 >= 0 for box in boxes(drawn))


def test_fewer_boxes_can_be_asked_for():
    assert len(boxes(figure(network(), "graph", boxes=3))) == 3
    with pytest.raises(ValueError, match="a graph is drawn in at least one box, asked for 0"):
        figure(network(), "graph", boxes=0)


def test_a_trace_without_a_graph_says_how_to_get_one():
    with pytest.raises(ValueError, match=r"the trace 'tiny' has no graph of its network; regard.record\(model\) draws one"):
        figure(translation(), "graph")
