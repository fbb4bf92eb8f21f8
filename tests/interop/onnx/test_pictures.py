"""Models of pictures as graphs: the sizes of pictures stay open, and a decoder may look at rows and columns."""

import pytest

from regard import registry
from regard.interop.onnx import tracing
from regard.interop.onnx.graphs import KEEP_OUTPUT
from regard.interop.onnx.parity import measure_differences
from regard.interop.onnx.sessions import Graph
from regard.interop.onnx.sources import Field, Sizes

from .models import COLUMNS, ROWS, sighted

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(1200)]

FEW = [
    Sizes(1, 1, 1, 0, 1),
    Sizes(3, 1, 6, 0, 2),
    Sizes(1, 4, 2, 1, 5),
    Sizes(4, 2, 1, 3, 3),
    Sizes(2, 5, ROWS, 9, COLUMNS),
]
CLOSE = 1e-5

soaked = pytest.mark.soak

EYES = {
    "resnet": ("resnet", {}),
    "residual, normed by itself": ("resnet", {"map_norm": "group", "map_positions": "normalised", "stride": 4}),
    "densenet": ("densenet", {}),
    "dense and coarse": ("densenet", {"stride": 16, "map_norm": "group", "map_positions": "learned"}),
    "vit": ("vit", {"stride": 5}),
    "patches with learned positions": ("vit", {"positions": "learned"}),
}


def furthest(model, field):
    """The largest difference of any output of both graphs, over pictures of several sizes."""
    encoder, step = (Graph(make(model, field), make.__name__) for make in (tracing.encoder, tracing.step))
    assert encoder.outputs[0] == KEEP_OUTPUT
    return max(max(measure_differences(model, encoder, step, sizes).values()) for sizes in FEW)


def test_a_model_of_pictures_equals_its_graphs_at_every_size_and_knows_its_rows_and_columns():
    """A mechanism that looks around each place; every other kind soaks."""
    assert furthest(*sighted("resnet", "recurrent", "grid_coverage", embedding_size=8)) <= CLOSE


@soaked
@pytest.mark.parametrize("what", EYES)
def test_an_encoder_of_pictures_equals_itself_as_a_graph(what):
    encoder, settings = EYES[what]
    assert furthest(*sighted(encoder, "transformer", "transformer", layers=1, **settings)) <= CLOSE


@soaked
@pytest.mark.parametrize("name", registry.names("visual"))
def test_an_attention_inside_a_cnn_equals_itself_as_a_graph(name):
    assert furthest(*sighted("resnet", "transformer", "transformer", visual_attention=name, layers=1)) <= CLOSE


@soaked
@pytest.mark.parametrize("decoder", ["convolution", "transformer"])
@pytest.mark.parametrize("attention", ["grid_coverage", "additive+sparsemax", "none"])
def test_a_decoder_of_pictures_equals_itself_as_a_graph(decoder, attention):
    assert furthest(*sighted("vit", decoder, attention, layers=1)) <= CLOSE


@soaked
@pytest.mark.parametrize("name", sorted({*registry.names("mechanisms")} - {"pointer"}))  # which copies words of its source
def test_a_mechanism_that_looks_at_a_picture_equals_itself_as_a_graph(name):
    assert furthest(*sighted("vit", "recurrent", name)) <= CLOSE


def test_axes_of_a_map_are_its_rows_and_columns_for_what_is_kept_and_keys_elsewhere():
    model, field = sighted("vit", "transformer", "grid_coverage", layers=1)
    assert tracing.open_axes(model, field) == {
        "token": {0: "sources", 1: "beams"},
        "keep": {0: "sources", 1: "rows", 2: "columns"},
        "memory.decoder.0.cross.keys": {0: "sources", 2: "keys"},
        "memory.decoder.0.cross.values": {0: "sources", 2: "keys"},
        "state.caches.0.keys": {0: "sources", 1: "beams", 3: "written"},
        "state.caches.0.values": {0: "sources", 1: "beams", 3: "written"},
        "state.attentions.0": {0: "sources", 1: "beams", 2: "keys"},
    }


def test_heights_and_widths_are_whole_places():
    _, field = sighted("vit", "transformer", "transformer", layers=1, stride=5)
    found = tracing.dimensions(field)
    assert found["height"].__name__ == "5*rows"
    assert found["width"].__name__ == "5*columns"


def test_a_map_of_few_rows_is_open_too():
    found = tracing.dimensions(Field(1, 3, 8))
    assert [(found[name].min, found[name].max) for name in ("rows", "columns", "keys")] == [(0, 3), (0, 3), (4, 9)]
