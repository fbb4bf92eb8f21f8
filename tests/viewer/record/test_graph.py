import pytest
import torch
from torch import nn

import regard
from regard.attention import MultiHead
from regard.attention.visual.channel_spatial import ChannelSpatial
from regard.attention.visual.non_local import NonLocal
from regard.data.batch import pad
from regard.viewer.io.check import check

from ...models.small import KINDS, batch, made


def drawn(model, *inputs):
    with torch.no_grad(), regard.record(model) as rec:
        model(*inputs)
    trace = rec.trace()
    check(trace)
    return trace.graph


def edges(graph):
    return {(edge.start, edge.end): edge for edge in graph.edges}


def reachable(graph, start):
    found, waiting = set(), [start]
    while waiting:
        now = waiting.pop()
        new = {edge.end for edge in graph.edges if edge.start == now} - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "tanh" not in kind and "transformer, recurrent" not in kind])
def test_every_attention_of_every_model_is_a_box_between_its_inputs_and_the_output(kind):
    model = made("additive", **KINDS[kind]).eval()
    graph = drawn(model, *batch())
    nodes = {node.id: node for node in graph.nodes}
    for name in model.attentions():
        assert nodes[name].kind == "attention"
        assert name in reachable(graph, "source") | reachable(graph, "target")
        assert "decoder.output" in reachable(graph, name)
        roles = ",".join(edge.role for edge in graph.edges if edge.end == name)
        assert {"query", "key", "value"} <= set(roles.split(","))
    assert {nodes[name].kind for name in ("source", "target")} == {"input"}
    assert len(graph.nodes) < 40


def test_a_bahdanau_model_by_hand():
    model = made("additive", **KINDS["recurrent, recurrent, lstm, bahdanau"]).eval()
    with torch.no_grad(), regard.record(model) as rec:
        model(pad([[4, 5, 6, 2]]), torch.tensor([[1, 4, 5]]))
    graph = rec.trace().graph
    cross = next(node for node in graph.nodes if node.id == "decoder.cross")
    assert dict(cross.inputs) == {"key": (1, 4, 8), "value": (1, 4, 8), "query": (1, 3, 8)}  # three steps of one query
    assert cross.output == (1, 3, 8)
    assert cross.parameters == 8 * 8 + 8 * 8 + 8
    assert cross.about == {
        "mechanism": "Attention",
        "score": "Additive",
        "normalise": "Softmax",
        "scope": "Everywhere",
        "heads": 1,
        "kernel": "reference",
        "calls": 3,
    }
    assert {pair: (edge.shape, edge.role) for pair, edge in edges(graph).items()} == {
        ("source", "encoder.embedding"): ((1, 4), ""),
        ("encoder.embedding", "encoder.layers"): ((1, 4, 8), ""),
        ("encoder.layers", "decoder.cross"): ((1, 3, 8), "query"),  # the states that the decoder begins with ask first
        ("target", "decoder.embedding"): ((1, 3), ""),
        ("decoder.embedding", "decoder.layers"): ((3, 1, 8), ""),  # as cells take it, time first
        ("decoder.cross", "decoder.layers"): ((1, 16), ""),
        ("encoder.layers", "decoder.layers"): ((1, 16), ""),
        ("decoder.layers", "decoder.cross"): ((1, 3, 8), "query"),
        ("decoder.cross", "decoder.readout"): ((1, 3, 24), ""),
        ("decoder.embedding", "decoder.readout"): ((1, 3, 24), ""),
        ("decoder.layers", "decoder.readout"): ((1, 3, 24), ""),
        ("decoder.readout", "decoder.output"): ((1, 3, 8), ""),
    }
    keyed = [edge for edge in graph.edges if edge.role == "key,value"]
    assert [(edge.start, edge.end, edge.shape) for edge in keyed] == [("encoder.layers", "decoder.cross", (1, 4, 8))]


def test_layers_of_a_transformer_are_a_chain_in_boxes_of_their_own():
    model = made("transformer", encoder="transformer", decoder="transformer", layers=3).eval()
    graph = drawn(model, *batch())
    parents = {node.id: node.parent for node in graph.nodes}
    assert parents["decoder.1.cross"] == "decoder.1"
    assert parents["decoder.1"] == "decoder"
    assert parents["decoder"] is None
    assert {node.kind for node in graph.nodes if node.parent == "encoder"} == {"embedding", "layer"}
    found = edges(graph)
    for layer in range(2):
        assert (f"encoder.{layer}.feedforward", f"encoder.{layer + 1}.self") in found
        assert (f"decoder.{layer}.self", f"decoder.{layer}.cross") in found
    assert ("encoder.0.self", "encoder.1.self") not in found  # what goes around a box is not told twice
    assert found["encoder.0.self", "encoder.0.feedforward"].shape == (3, 4, 8)


def test_an_operation_on_parameters_is_their_box_running():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.look = nn.Embedding(5, 8), MultiHead(8, heads=2)
            self.bias = nn.Linear(8, 8)

        def forward(self, tokens):
            data = self.words(tokens)
            data = self.look(data, self.look.remember(data)).context
            data = data @ self.bias.weight.mT + torch.zeros_like(data)
            return data @ self.words.weight.mT

    found = edges(drawn(Tied(), torch.tensor([[1, 2, 3]])))
    assert set(found) == {("tokens", "words"), ("words", "look"), ("look", "bias"), ("bias", "words")}


def test_attention_inside_a_cnn_is_connected_and_so_are_its_halves():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), ChannelSpatial(16), NonLocal(16), nn.Conv2d(16, 2, 1))
    graph = drawn(model, torch.randn(1, 3, 6, 6))
    assert [node.id for node in graph.nodes if node.kind == "attention"] == ["1", "1.channel", "1.spatial", "2"]
    pairs = set(edges(graph))
    assert {("0", "1"), ("0", "1.channel"), ("1.channel", "1.spatial"), ("1.spatial", "1"), ("1", "2"), ("2", "3")} <= pairs
    assert next(node for node in graph.nodes if node.id == "2").inputs["image"] == (1, 16, 4, 4)


def test_inside_a_box_nothing_is_followed_so_that_fast_paths_stay():
    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.torch = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.look = MultiHead(8, heads=2)

        def forward(self, data):
            data = self.torch(data)
            return self.look(data, self.look.remember(data)).context

    model, data = Beside().eval(), torch.randn(2, 5, 8)
    with torch.no_grad():
        plain = model(data)
        with regard.record(model) as rec:
            recorded = model(data)
    assert torch.equal(plain, recorded)
    assert set(edges(rec.trace().graph)) == {("data", "torch"), ("torch", "look")}


def test_an_input_that_has_the_name_of_a_module_is_told_apart():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.data, self.look = nn.Linear(8, 8), MultiHead(8, heads=2)

        def forward(self, data):
            data = self.data(data)
            return self.look(data, self.look.remember(data)).context

    assert set(edges(drawn(Named(), torch.randn(1, 2, 8)))) == {("data (input)", "data"), ("data", "look")}


def test_a_model_that_is_one_attention_is_one_box():
    heads, data = MultiHead(8, heads=2), torch.randn(1, 3, 8)
    with regard.record(heads) as rec:
        heads(data, heads.remember(data))
    [node] = rec.trace().graph.nodes
    assert (node.id, node.kind, node.inputs["query"], node.output) == ("attention", "attention", (1, 3, 8), (1, 3, 8))


def test_parts_called_one_by_one_are_drawn_as_well():
    model = made("transformer", encoder="transformer", decoder="transformer").eval()
    with torch.no_grad(), regard.record(model) as rec:
        memory = model.encode(pad([[4, 5, 2]]))
        carried = model.decoder.start(memory)
        for token in (1, 4):
            carried = model.decoder.step(torch.tensor([token]), memory, carried).state
    graph = rec.trace().graph
    assert {node.id for node in graph.nodes if node.kind == "input"} == {"source", "tokens"}
    assert {"decoder.0.cross", "decoder.output"} <= reachable(graph, "source")
    assert next(node for node in graph.nodes if node.id == "decoder.0.cross").inputs["query"] == (1, 2, 8)


def test_without_a_graph_nothing_is_drawn():
    model, (source, target) = made().eval(), batch()
    with regard.record(model, graph=False) as rec:
        model(source, target)
    assert rec.trace().graph == regard.viewer.trace.Graph()
