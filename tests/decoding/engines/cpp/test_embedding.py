import pytest
import torch

from regard.attention.positions.learned import Learned
from regard.attention.positions.sinusoidal import Sinusoidal
from regard.decoding.engines.cpp.embedding import NativeEmbedding, covers
from regard.models.layers.embedding import Embedding


def test_places_are_known_as_far_as_they_are_asked_for():
    spoken = NativeEmbedding(Embedding(5, 4, positions=Sinusoidal(4)))
    spoken.reach(3)
    first = spoken.record.places
    spoken.reach(2)
    assert (spoken.record.places, spoken.record.known) == (first, 3)
    spoken.reach(9)
    assert spoken.record.known == 9
    torch.testing.assert_close(spoken.references[-1], Sinusoidal(4).at(torch.arange(9)))
    assert len(spoken.references) == 3  # another search may still read those that were outgrown


def test_positions_that_end_are_not_passed_and_a_place_behind_them_is_refused_in_their_words():
    spoken = NativeEmbedding(Embedding(5, 4, positions=Learned(4, limit=2)))
    spoken.reach(7)
    assert spoken.record.known == 2
    spoken.check(1)
    with pytest.raises(ValueError, match="Learned has vectors for 2 positions, and met position 3"):
        spoken.check(2)
    with pytest.raises(ValueError, match="met position 4"):
        spoken.know(4)


def test_without_positions_nothing_is_added_and_every_place_is_known():
    spoken = NativeEmbedding(Embedding(5, 4))
    spoken.reach(7)
    spoken.check(6)
    assert spoken.record.places is None


def test_what_it_does_not_cover_it_says():
    assert covers(Embedding(5, 4, norm=True)) == "needs an embedding without a norm"
    beside = Embedding(5, 4, positions=Sinusoidal(4, join="concat"))
    assert covers(beside) == "needs positions that are added, got concat"
    assert covers(Embedding(5, 4, positions=Sinusoidal(4))) is None
