import torch
from torch import nn

import regard
from regard.attention import MultiHead
from regard.viewer.record.graph_nodes import MOST, fold, kind, parameters, plain

from ...models.small import batch, made


def test_a_deep_network_has_as_many_boxes_as_a_reader_can_take_in():
    model = made("transformer", encoder="transformer", decoder="transformer", layers=11).eval()
    folding = fold(model, model.attentions())
    assert len(fold(made("transformer", encoder="transformer", decoder="transformer", layers=6), {}).boxes) < MOST
    assert set(model.attentions()) <= set(folding.boxes)
    assert "decoder.3.feedforward" not in folding.boxes
    with torch.no_grad(), regard.record(model) as rec:
        model(*batch())
    pairs = {(edge.start, edge.end) for edge in rec.trace().graph.edges}
    assert ("decoder.3.cross", "decoder.3") in pairs  # what thinks behind it is the layer itself


def test_a_recurrent_model_by_hand():
    model = made()
    folding = fold(model, model.attentions())
    assert set(folding.opened) == {"encoder", "decoder"}
    assert set(folding.boxes) == {
        "encoder.embedding",
        "encoder.layers",
        "decoder.cross",
        "decoder.embedding",
        "decoder.layers",
        "decoder.readout",
        "decoder.output",
    }
    assert folding.parent("decoder.cross.query") == "decoder.cross"
    assert folding.parent("decoder.cross") == "decoder"
    assert folding.parent("decoder") is None
    assert folding.owners[id(model.decoder.cross.score.v.weight)] == "decoder.cross"
    assert folding.module("decoder.cross") is model.decoder.cross


def test_norms_and_what_learns_nothing_are_no_boxes():
    assert plain(nn.Sequential(nn.LayerNorm(4), nn.Dropout(0.1), nn.ReLU()))
    assert not plain(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)))


def test_a_list_is_called_after_what_is_in_it_and_its_parameters_are_counted():
    both = nn.ModuleList([nn.LSTM(2, 3), nn.LSTM(3, 3)])
    assert kind(both) == "lstm"
    assert kind(MultiHead(8, heads=2)) == "multihead"
    assert parameters(nn.Linear(3, 4)) == 16
