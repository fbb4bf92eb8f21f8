from regard.viewer.figure.folded import Arrow, fold
from regard.viewer.trace import Edge, Graph, Node

from .traces import network


def test_layers_that_repeat_become_one():
    found = fold(network(layers=6).graph, 40)
    assert [(box.id, box.times) for box in found.boxes] == [
        ("source", 1), ("encoder.0.self", 6), ("encoder.0.feedforward", 6), ("output", 1),
    ]  # fmt: skip
    assert found.arrows == [
        Arrow("source", "encoder.0.self", "key, query, value"),
        Arrow("encoder.0.self", "encoder.0.feedforward", ""),
        Arrow("encoder.0.feedforward", "output", ""),
    ]


def test_a_layer_that_differs_stays_apart():
    nodes = [Node(f"layers.{number}.{part}", "linear") for number in range(4) for part in ("a", "b")]
    nodes[3] = Node("layers.1.b", "attention")
    found = fold(Graph(tuple(nodes), ()), 40)
    assert [(box.id, box.times) for box in found.boxes] == [
        ("layers.0.a", 1), ("layers.0.b", 1), ("layers.1.a", 1), ("layers.1.b", 1), ("layers.2.a", 2), ("layers.2.b", 2),
    ]  # fmt: skip


def test_a_circle_within_one_layer_stays():
    nodes = tuple(Node(f"{number}.{part}", "linear") for number in range(2) for part in "ab")
    edges = (Edge("0.a", "0.b", ()), Edge("0.b", "0.a", ()), Edge("0.b", "1.a", ()))
    assert fold(Graph(nodes, edges), 40).arrows == [Arrow("0.a", "0.b", ""), Arrow("0.b", "0.a", "")]


def test_repeats_within_repeats_multiply():
    nodes = tuple(Node(f"stack.{outer}.block.{inner}", "linear") for outer in range(2) for inner in range(3))
    assert [(box.id, box.times) for box in fold(Graph(nodes, ()), 40).boxes] == [("stack.0.block.0", 6)]


def test_what_is_deepest_goes_into_what_it_stands_in_and_attentions_last():
    graph = network(layers=1).graph
    few = fold(graph, 3)
    assert [box.id for box in few.boxes] == ["source", "encoder.0", "output"]
    assert few.boxes[1].kind == "folded"
    assert [(arrow.start, arrow.end) for arrow in few.arrows] == [("source", "encoder.0"), ("encoder.0", "output")]
    assert len(fold(graph, 1).boxes) == 3, "there is nothing around these"


def test_modules_around_others_are_no_boxes_and_arrows_to_nowhere_are_left_out():
    graph = Graph(
        (Node("a", "linear"), Node("b", "linear", "whole"), Node("whole", "whole")),
        (Edge("a", "b", (1,)), Edge("a", "gone", (1,))),
    )
    found = fold(graph, 40)
    assert [box.id for box in found.boxes] == ["a", "b"]
    assert found.arrows == [Arrow("a", "b", "")]


def test_an_attention_says_what_it_is():
    box = fold(network(layers=1).graph, 40).boxes[1]
    assert box.lines == ("ScaledDot · Softmax · Everywhere", "4 heads, 1 × 9 × 64")
    assert fold(network(layers=1).graph, 40).boxes[0].lines == ("input", "1 × 9")
