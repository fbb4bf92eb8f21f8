from itertools import product

import pytest
import torch

import regard
from regard.data.batch import pad
from regard.decoding import beam as reference
from regard.decoding.engines import select as file
from regard.decoding.engines.eager import convolution, recurrent, transformer
from regard.decoding.engines.eager import modules as as_it_is
from regard.decoding.engines.eager.beam import beam
from regard.decoding.engines.select import select_engine
from regard.errors import ConfigError

from ...models.small import ATTENTIONS, KINDS, made

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2], [10, 3, 4, 5, 6, 7, 2]])
OPTIONS = {
    "deeper": {"encoder": "transformer", "decoder": "transformer", "layers": 1, "decoder_layers": 3},
    "set beside": {"encoder": "transformer", "decoder": "transformer", "join": "concat"},
    "learned": {"encoder": "transformer", "decoder": "transformer", "positions": "learned"},
    "no positions": {"encoder": "transformer", "decoder": "transformer", "positions": "none"},
    "two layers": {"layers": 2, "embedding_size": 6},
    "untied": {"tie_embeddings": False},
}


def model(attention: str, **options):
    """A model in use, whose targets differ: chance begins anew, so that a failure can be met again."""
    torch.manual_seed(3)
    return made(attention, target=500, **options).eval()


def alike(one, other, tolerance=1e-5):
    for left, right in zip(one, other, strict=True):
        assert [each.tokens for each in left] == [each.tokens for each in right]
        assert [each.finished for each in left] == [each.finished for each in right]
        for mine, theirs in zip(left, right, strict=True):
            assert mine.logprobs == pytest.approx(theirs.logprobs, abs=tolerance)
            assert mine.score == pytest.approx(theirs.score, abs=tolerance)
            assert mine.normalised == pytest.approx(theirs.normalised, abs=tolerance)


FEW = [
    *product(("transformer, transformer, pre", "transformer, transformer, post"), ("transformer", "additive", "dot")),
    *product(("recurrent, recurrent, lstm, luong", "recurrent, recurrent, gru, bahdanau"), ("bilinear", "transformer")),
    ("recurrent, recurrent, tanh, luong without feeding", "additive"),
    ("transformer, recurrent, lstm, bahdanau", "scaled_dot"),
    ("recurrent, recurrent, lstm, luong", "none"),
    *product(("convolution, convolution", "recurrent, convolution"), ("bilinear", "transformer")),
    ("convolution, convolution", "none"),
    *product(("recurrent, recurrent, lstm, luong", "recurrent, recurrent, gru, bahdanau"), ("mocha", "additive+sparsemax")),
    ("convolution, convolution", "mocha"),
    *((kind, "transformer") for kind in OPTIONS),
]
"""Each engine in each of its ways; the soak has all models."""


@pytest.mark.parametrize(
    ("kind", "attention"),
    [*FEW, *(pytest.param(*each, marks=pytest.mark.soak) for each in product(KINDS, ATTENTIONS) if each not in FEW)],
)
def test_every_model_is_searched_as_the_reference_searches_it(kind, attention):
    built = model(attention, **(KINDS | OPTIONS)[kind])
    with torch.no_grad():
        memory = built.encode(SOURCE)
    engine = select_engine(built.decoder, memory)
    for beams, best, alpha in ((1, 1, 1.0), (4, 4, 0.6)):
        options = {"beams": beams, "best": best, "length": [5, 14, 0, 9], "length_penalty": alpha}
        alike(beam(engine, memory, **options), reference(built.decoder, memory, **options))


@pytest.mark.parametrize(
    ("kind", "attention", "engine"),
    [
        ("transformer, transformer, pre", "transformer", transformer.Engine),
        ("transformer, transformer, post", "additive", transformer.Engine),
        ("recurrent, recurrent, lstm, luong", "bilinear", recurrent.Engine),
        ("recurrent, recurrent, gru, bahdanau", "additive", recurrent.Engine),
        ("recurrent, recurrent, lstm, luong", "additive+sparsemax", recurrent.Engine),
        ("recurrent, recurrent, lstm, luong", "monotonic", recurrent.Engine),
        ("transformer, transformer, pre", "additive+sparsemax", as_it_is.EagerEngine),
        ("recurrent, recurrent, lstm, luong", "none", as_it_is.EagerEngine),
        ("recurrent, convolution", "transformer", convolution.Engine),
        ("convolution, convolution", "additive", convolution.Engine),
        ("convolution, convolution", "none", as_it_is.EagerEngine),
    ],
)
def test_each_decoder_gets_the_engine_that_covers_it(kind, attention, engine):
    built = model(attention, **KINDS[kind])
    with torch.no_grad():
        assert type(select_engine(built.decoder, built.encode(SOURCE))) is engine


def test_an_engine_is_kept_until_a_weight_changes():
    built = model("transformer", **KINDS["transformer, transformer, pre"])
    with torch.no_grad():
        memory = built.encode(SOURCE)
        first = select_engine(built.decoder, memory)
        assert select_engine(built.decoder, memory) is first
        built.decoder.output.bias += 1.0
        assert select_engine(built.decoder, memory) is not first


def test_it_goes_with_its_decoder():
    built = model("transformer", **KINDS["transformer, transformer, pre"])
    with torch.no_grad():
        select_engine(built.decoder, built.encode(SOURCE))
    before = len(file.ENGINES)
    del built
    assert len(file.ENGINES) < before


def test_who_listens_to_modules_hears_them():
    built, heard = model("bilinear"), []
    with torch.no_grad():
        memory = built.encode(SOURCE)
    hook = built.decoder.readout.register_forward_hook(lambda *_: heard.append(1))
    assert type(select_engine(built.decoder, memory)) is as_it_is.EagerEngine
    hook.remove()
    assert type(select_engine(built.decoder, memory)) is recurrent.Engine


@pytest.mark.parametrize("graph", [True, False])
def test_a_recorder_hears_what_the_engine_would_not_tell(graph):
    built = model("bilinear")
    with torch.no_grad():
        memory = built.encode(SOURCE)
    with regard.record(built, graph=graph) as heard:
        assert type(select_engine(built.decoder, memory)) is as_it_is.EagerEngine
        beam(select_engine(built.decoder, memory), memory, beams=1, length=2)
    assert heard.trace().example().attentions
    assert type(select_engine(built.decoder, memory)) is recurrent.Engine


def test_an_empty_source_is_read_by_the_decoder_itself():
    built = model("transformer", **KINDS["recurrent, transformer, gru"])
    source = SOURCE._replace(keep=SOURCE.keep.clone())
    with torch.no_grad():
        memory = built.encode(source)
        next(iter(memory.memories.values())).keep[1] = False
    assert type(select_engine(built.decoder, memory)) is as_it_is.EagerEngine


def test_a_model_in_training_is_left_to_the_reference():
    built = model("bilinear")
    with torch.no_grad():
        memory = built.encode(SOURCE)
    built.train()
    assert select_engine(built.decoder, memory) is None
    with pytest.raises(ConfigError, match="precision=int8 is for a trained model on a CPU; use float32, or --device cpu"):
        select_engine(built.decoder, memory, "int8")


def test_int8_is_refused_where_nothing_would_be_rounded():
    built = model("none")
    with torch.no_grad():
        memory = built.encode(SOURCE)
    with pytest.raises(ConfigError, match=r"precision=int8 does not cover this model: .*use precision=float32"):
        select_engine(built.decoder, memory, "int8")


def test_half_precision_is_for_a_gpu():
    built = model("bilinear")
    with torch.no_grad():
        memory = built.encode(SOURCE)
    with pytest.raises(ConfigError, match="precision=bf16 is for whole answers of a trained model on a GPU; use float32"):
        select_engine(built.decoder, memory, "bf16")
