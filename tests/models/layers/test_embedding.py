import pytest
import torch
from torch.testing import assert_close

from regard.attention.positions.learned import Learned
from regard.attention.positions.sinusoidal import Sinusoidal
from regard.models.layers.embedding import Embedding

TOKENS = torch.tensor([[3, 1], [0, 2]])


def test_without_anything_else_it_is_the_table():
    embedding = Embedding(4, 6)
    assert torch.equal(embedding(TOKENS), embedding.table.weight[TOKENS])
    assert embedding.size == 6
    assert embedding.table.weight.abs().max() <= 0.1
    assert 0.45 < Embedding(50, 6, spread=0.5).table.weight.abs().max() <= 0.5


def test_scaled_vectors_have_a_spread_of_one():
    embedding = Embedding(2000, 16, scaled=True)
    assert_close(embedding(torch.arange(2000)[None]).std(), torch.tensor(1.0), atol=0.05, rtol=0)
    assert_close(embedding(TOKENS), embedding.table.weight[TOKENS] * 4)


@pytest.mark.parametrize("kind", [Sinusoidal, Learned])
def test_positions_are_added_or_set_beside_and_begin_where_asked(kind):
    added = Embedding(4, 6, positions=kind(6))
    vectors = added.table.weight[TOKENS]
    assert_close(added(TOKENS, 3), vectors + added.positions.at(torch.tensor([3, 4])))
    beside = Embedding(4, 6, positions=kind(2, "concat"))
    assert beside.size == 8
    found = beside(TOKENS, torch.tensor([0, 5]))
    assert torch.equal(found[..., :6], beside.table.weight[TOKENS])
    assert_close(found[1, :, 6:], beside.positions.at(torch.tensor([5, 6])))


def test_dropout_falls_on_the_whole_vector_once_per_row_if_variational():
    embedding = Embedding(4, 64, positions=Sinusoidal(64), dropout=0.5, variational=True)
    hidden = embedding(TOKENS) == 0
    assert torch.equal(hidden[:, 0] | hidden[:, 1], hidden[:, 0] & hidden[:, 1])
    mask = torch.zeros(2, 64)
    assert embedding(TOKENS, mask=mask).abs().sum() == 0


def test_a_norm_comes_behind_the_positions():
    embedding = Embedding(4, 6, positions=Sinusoidal(6), norm=True)
    found = embedding(TOKENS)
    assert_close(found.mean(-1), torch.zeros(2, 2), atol=1e-6, rtol=0)
    plain = Embedding(4, 6, positions=embedding.positions)
    plain.table = embedding.table
    assert_close(found, torch.nn.functional.layer_norm(plain(TOKENS), (6,)))


@pytest.mark.parametrize("kind", [Sinusoidal, Learned])
def test_positions_may_be_given_one_by_one(kind):
    embedding = Embedding(4, 6, positions=kind(6))
    places = torch.tensor([[0, 1], [5, 0]])
    assert_close(embedding(TOKENS, places=places), embedding.table.weight[TOKENS] + embedding.positions.at(places))
