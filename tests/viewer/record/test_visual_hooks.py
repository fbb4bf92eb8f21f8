import numpy as np
import pytest
import torch

import regard
from regard.attention import visual
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.score.dot import Dot
from regard.data.axis import Image, Index
from regard.viewer.io.check import check
from regard.viewer.record.visual_hooks import stage


@pytest.mark.parametrize("name", regard.registry.names("visual"))
def test_every_attention_inside_a_cnn_is_recorded_and_gives_what_it_gives(name):
    module = regard.find(name, "visual")(16).eval()
    image = torch.randn(2, 16, 4, 5)
    plain = module(image)
    with regard.record(module) as rec:
        recorded = module(image)
    assert torch.equal(plain, recorded)
    assert "attend" not in module.__dict__
    trace = rec.trace()
    check(trace)
    weights = module.attend(image).weights.detach()
    attention_map = trace.attention("attention", example=1)
    np.testing.assert_allclose(attention_map.weights, weights[1], atol=1e-3)


@pytest.mark.parametrize("name", regard.registry.names("visual"))
def test_padding_is_heeded_while_somebody_listens(name):
    module, image, keep = regard.find(name, "visual")(16).eval(), torch.randn(1, 16, 4, 5), torch.ones(1, 4, 5).bool()
    keep[:, 2:] = False
    with regard.record(module) as rec:
        recorded = module(image, keep)
    assert torch.equal(recorded, module(image, keep))
    weights = module.attend(image, keep=keep).weights.detach()
    np.testing.assert_allclose(rec.trace().attention("attention").weights, weights[0], atol=1e-3)


def test_the_places_of_a_feature_map_are_a_picture_and_channels_are_numbers():
    module = visual.NonLocal(4)
    with regard.record(module) as rec:
        module(torch.randn(1, 4, 3, 5))
    attention_map, axes = rec.trace().attention(), rec.trace().example().axes
    assert (attention_map.query, attention_map.key) == ("place", "place")
    assert isinstance(axes["place"], Image)
    assert axes["place"].grid == (3, 5)
    assert attention_map.source == "again"
    gate = visual.Channel(16)
    with regard.record(gate) as rec:
        gate(torch.randn(1, 16, 3, 5))
    axes = rec.trace().example().axes
    assert {name: (type(axis), len(axis)) for name, axis in axes.items()} == {"map": (Index, 1), "channel": (Index, 16)}


def test_rows_and_statistics_of_a_feature_map():
    module, image = visual.NonLocal(4), torch.randn(1, 4, 3, 3)
    with regard.record(module) as whole:
        module(image)
    with regard.record(module, rows=(2, 8, 30)) as some:
        module(image)
    assert some.trace().attention().rows == (2, 8)
    np.testing.assert_array_equal(some.trace().attention().weights, whole.trace().attention().weights[:, [2, 8]])
    with regard.record(module, statistics=True) as measured:
        module(image)
    assert measured.trace().attention().weights is None
    np.testing.assert_array_equal(
        measured.trace().attention().statistics["max"], whole.trace().attention().statistics["max"]
    )


def test_stages_are_told_by_name_also_where_they_are_joined():
    assert stage(Dot()) == "Dot"
    assert stage(Causal() & ~Dilated(2)) == "Causal & ~Dilated"
    assert stage(Causal() | Dilated(2)) == "Causal | Dilated"
    heads = regard.attention.MultiHead(8, heads=2, sum_scores=True)
    assert stage(heads.score) == "SummedHeads(ScaledDot)"
