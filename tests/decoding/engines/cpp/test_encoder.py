import pytest
import torch

from regard.attention.positions.learned import Learned
from regard.data.batch import pad
from regard.decoding.engines.cpp.encoder import Engine, build_memory_projection, covers

from ..eager.test_encoder import FULL, built
from ..eager.walked import SOURCE
from .test_transformer import OPTIONS


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("source", [SOURCE, FULL], ids=["padded", "full"])
@torch.no_grad()
def test_it_finds_what_the_encoder_finds(kind, source):
    model = built(**OPTIONS[kind])
    torch.testing.assert_close(Engine(model.encoder)(source), model.encoder(source), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_several_threads_find_the_same(two_threads):
    encoder = built(hidden_size=64).encoder
    source = pad([[4 + (place * row) % 7 for place in range(40 - row)] for row in range(9)])
    torch.testing.assert_close(Engine(encoder)(source), encoder(source), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_final_state_that_nobody_needs_is_left_out():
    encoder = built().encoder
    assert Engine(encoder, summed=False)(SOURCE).final == ()


@torch.no_grad()
def test_the_memories_of_all_layers_are_one_product():
    model = built()
    encoded = model.encoder(SOURCE)
    found, right = build_memory_projection(model.decoder)(encoded).memories, model.decoder.remember(encoded).memories
    assert list(found) == list(right)
    for name in right:
        torch.testing.assert_close(found[name], right[name], atol=1e-5, rtol=1e-5)
    assert (
        found["decoder.0.cross"].keys.untyped_storage().data_ptr()
        == found["decoder.1.cross"].values.untyped_storage().data_ptr()
    )


def test_who_remembers_in_another_way_does_it_itself():
    assert build_memory_projection(built(decoder="recurrent").decoder) is None
    torch.manual_seed(5)
    assert build_memory_projection(built(activation="gelu").decoder) is None


@torch.no_grad()
def test_a_source_that_is_longer_than_the_positions_is_refused():
    encoder = built().encoder
    encoder.embedding.positions = Learned(8, limit=3)
    with pytest.raises(ValueError, match="Learned has vectors for 3 positions, and met position 4"):
        Engine(encoder)(SOURCE)


def test_what_it_does_not_cover_it_says():
    assert covers(built(activation="gelu").encoder).startswith("needs relu, got GELU")
    assert covers(built(encoder="recurrent").encoder) == "needs the Transformer encoder, got Recurrent"
