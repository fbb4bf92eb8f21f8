import itertools

import pytest
import torch

import regard
from regard import registry
from regard.attention.mechanisms.monotonic import Energy
from regard.config import AttentionPart, Dropout, Model, OutputPart
from regard.errors import RefusedError
from regard.interop.onnx import tracing
from regard.interop.onnx.parity import check_parity, measure_differences
from regard.interop.onnx.sessions import ENCODER, Graph
from regard.interop.onnx.sources import Sizes
from regard.models.seq2seq import Seq2Seq, build
from regard.training.run_directory import STEP

from .models import LONGEST, small

pytestmark = [pytest.mark.unhooked]

KINDS = {
    "recurrent": ("recurrent", "recurrent", "additive"),
    "convolution": ("convolution", "convolution", "dot"),
    "transformer": ("transformer", "transformer", "transformer"),
}
FEW = [Sizes(1, 1, 1, 0), Sizes(3, 1, 6, 0), Sizes(1, 4, 2, 1), Sizes(4, 2, 1, 3), Sizes(2, 5, LONGEST, 9)]
MANY = [Sizes(*each) for each in itertools.product((1, 3, 4), (1, 2, 5), (1, 2, 9), (0, 1, 7))]
CLOSE = 1e-5

soaked = pytest.mark.soak


def furthest(model, shapes):
    """The largest difference of any output of both graphs, over all these shapes."""
    encoder, step = (Graph(make(model, LONGEST), make.__name__) for make in (tracing.encoder, tracing.step))
    return max(max(measure_differences(model, encoder, step, sizes).values()) for sizes in shapes)


@pytest.mark.timeout(600)
def test_a_graph_equals_its_model_at_every_size(run, exported):
    """A recurrent model, the one that all tests of this folder share; every other kind soaks."""
    model = regard.load(run, "cpu").model
    encoder, step = (Graph((exported / name).read_bytes(), name) for name in (ENCODER, STEP))
    assert max(max(measure_differences(model, encoder, step, sizes).values()) for sizes in MANY) <= CLOSE


def short() -> Seq2Seq:
    """A model of sources of 4 tokens: fewer than the usual example has, and there is no vector for a fifth place."""
    parts = Model(encoder="transformer", attention=AttentionPart("dot"), hidden_size=8, heads=2, positions="learned")
    return build(parts, Dropout(), 11, 13, joint=False, longest=(4, LONGEST)).eval()


def test_an_example_is_no_longer_than_the_sources_of_a_model():
    assert [tracing.default_sizes(source_limit).keys for source_limit in (2, 3, 4, 6, 256)] == [2, 2, 3, 5, 5]
    assert tracing.open_axes(short(), 4)["keep"] == {0: "sources", 1: "keys"}


@soaked
@pytest.mark.timeout(1200)
def test_a_model_of_short_sources_has_graphs_too():
    model = short()
    encoder, step = (Graph(make(model, 4), make.__name__) for make in (tracing.encoder, tracing.step))
    check_parity(model, encoder, step, 4)


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_equals_its_model_at_81_sizes(kind):
    assert furthest(small(*KINDS[kind], layers=2), MANY) <= CLOSE


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_a_mechanism_equals_itself_as_a_graph(name):
    assert furthest(small("recurrent", "recurrent", name), FEW) <= CLOSE


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", registry.names("normalise"))
def test_a_normaliser_equals_itself_as_a_graph(name):
    assert (
        furthest(
            small("recurrent", "recurrent", f"bilinear+{name}" if name != "sum_to_one" else "feature_map+sum_to_one"), FEW
        )
        <= CLOSE
    )


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", registry.names("score"))
def test_a_score_equals_itself_as_a_graph(name):
    assert furthest(small("recurrent", "recurrent", name), FEW) <= CLOSE


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", ["rotary", "alibi", "relative", "shaw", "t5", "transformer_xl", "local", "dilated", "sparsemax"]
)
def test_looking_at_itself_equals_itself_as_a_graph(name):
    model = small("transformer", "transformer", "transformer", self_attention=name, positions="none")
    assert furthest(model, FEW) <= CLOSE


OTHERS = {
    "gru": ("recurrent", "recurrent", "additive", {"cell": "gru", "layers": 2, "order": "bahdanau"}),
    "tanh, one way, from the end": (
        "recurrent",
        "recurrent",
        "bilinear",
        {"cell": "tanh", "input_feeding": False, "bidirectional": False, "reverse_source": True},
    ),
    "cells at once": ("recurrent", "recurrent", "bilinear", {"layers": 2, "input_feeding": False}),
    "no attention": ("recurrent", "recurrent", "none", {"summary": "both"}),
    "no attention in a transformer": ("transformer", "transformer", "none", {}),
    "no attention in convolutions": ("convolution", "convolution", "none", {}),
    "learned positions": ("transformer", "transformer", "transformer", {"positions": "learned", "norm": "post"}),
    "learned positions in convolutions": ("convolution", "convolution", "dot", {"positions": "learned", "join": "concat"}),
    "a transformer read by cells": ("transformer", "recurrent", "additive", {}),
    "cells read by a transformer": ("recurrent", "transformer", "transformer", {"layers": 2}),
    "a transformer that copies": ("transformer", "transformer", "pointer", {}),
    "coverage in convolutions": ("convolution", "convolution", "coverage", {}),
    "the marginal in a transformer": ("transformer", "transformer", "bahdanau+marginal", {}),
    "a mixture": ("recurrent", "recurrent", "additive", {"output": OutputPart("mixture", heads=2)}),
    "attention over the words": ("recurrent", "recurrent", "additive", {"output": OutputPart("attention", score="cosine")}),
}


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("what", OTHERS)
def test_every_other_part_equals_itself_as_a_graph(what):
    *names, settings = OTHERS[what]
    assert furthest(small(*names, **settings), FEW) <= CLOSE


@soaked
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["monotonic", "mocha"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_that_stops_here_and_there_equals_itself_as_a_graph(kind, name):
    model = small(*KINDS[kind][:2], name)
    with torch.no_grad():
        for energy in (each for each in model.modules() if isinstance(each, Energy)):
            energy.r.zero_()
            energy.g.fill_(3.0)
    assert furthest(model, MANY) <= CLOSE


def test_a_module_that_has_no_graph_is_refused_with_what_the_exporter_says(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no such\n operator")

    monkeypatch.setattr(torch.export, "export", refuse)
    with pytest.raises(
        RefusedError, match=r"its encoding has no graph whose lengths stay open \(no such operator\); `regard"
    ):
        tracing.encoder(small("transformer", "transformer", "transformer"), LONGEST)


def test_axes_that_grow_are_found_and_no_others():
    assert tracing.open_axes(small("transformer", "transformer", "coverage"), LONGEST) == {
        "token": {0: "sources", 1: "beams"},
        "keep": {0: "sources", 1: "keys"},
        "memory.decoder.0.cross.keys": {0: "sources", 2: "keys"},
        "memory.decoder.0.cross.values": {0: "sources", 2: "keys"},
        "state.caches.0.keys": {0: "sources", 1: "beams", 3: "written"},
        "state.caches.0.values": {0: "sources", 1: "beams", 3: "written"},
        "state.attentions.0": {0: "sources", 1: "beams", 2: "keys"},
    }
