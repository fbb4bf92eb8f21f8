import torch
from torch.testing import assert_close

from regard.data.batch import pad
from regard.models.encoders.embedding_values import EmbeddingValues
from regard.models.encoders.recurrent import Recurrent


def test_keys_are_of_the_context_and_values_of_the_word_alone():
    torch.manual_seed(0)
    encoder = EmbeddingValues(Recurrent(9, 8), 9).eval()
    first, second = encoder(pad([[4, 5, 6]])), encoder(pad([[7, 5, 8]]))
    assert not torch.allclose(first.data[:, 1], second.data[:, 1])
    assert_close(first.values[:, 1], second.values[:, 1])
    assert encoder.size == 8
    assert encoder.embedding is encoder.encoder.embedding
