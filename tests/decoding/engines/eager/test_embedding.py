import pytest
import torch

from regard.attention.positions.learned import Learned
from regard.attention.positions.sinusoidal import Sinusoidal
from regard.decoding.engines.eager.embedding import OutputProjection, StepEmbedding
from regard.decoding.engines.eager.linear import Buffers
from regard.models.layers.embedding import Embedding
from regard.models.output_heads.projection import Projection

KINDS = {
    "plain": {},
    "scaled, with sines": {"scaled": True, "positions": Sinusoidal(6)},
    "learned places set beside": {"positions": Learned(6, join="concat", limit=9)},
    "normed": {"norm": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_is_the_vector_that_the_embedding_gives_at_its_place(kind):
    torch.manual_seed(0)
    embedding, tokens = Embedding(12, 6, **KINDS[kind]).eval(), torch.tensor([4, 11, 4])
    with torch.no_grad():
        words = StepEmbedding(embedding)
        for place in (0, 3, 3):
            torch.testing.assert_close(words(tokens, place), embedding(tokens[:, None], place)[:, 0])


def test_a_place_that_has_no_vector_is_refused_as_the_embedding_refuses_it():
    words = StepEmbedding(Embedding(12, 6, positions=Learned(6, limit=9)).eval())
    with torch.no_grad(), pytest.raises(ValueError, match="Learned has vectors for 9 positions, and met position 10"):
        words(torch.tensor([4]), 9)


@pytest.mark.parametrize(("size", "tie"), [(6, True), (6, False), (8, True), (8, False)])
def test_the_output_is_the_projections(size, tie):
    torch.manual_seed(0)
    projection, table, data = Projection(size, 12, 6, tie), torch.randn(12, 6), torch.randn(5, size)
    with torch.no_grad():
        projection.bias += torch.randn(12)
        output, rooms = OutputProjection(projection, table, "float32"), Buffers()
        torch.testing.assert_close(output(rooms, data), projection(data, table))


def test_logits_of_a_step_stand_where_those_of_the_step_before_stood():
    projection, table, data = Projection(6, 12, 6, True), torch.randn(12, 6), torch.randn(5, 6)
    with torch.no_grad():
        output, rooms = OutputProjection(projection, table, "float32"), Buffers()
        assert output(rooms, data).data_ptr() == output(rooms, data[:3]).data_ptr()
