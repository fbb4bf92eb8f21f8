import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import attend
from regard.models.output_heads.attention import Attention, find_score
from regard.models.output_heads.projection import Projection

TABLE = torch.tensor([[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]])
DATA = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])


def test_a_dot_product_compares_with_every_embedding():
    output = Attention(2, vocabulary=3, embedding=2)
    assert_close(output(DATA, TABLE), torch.tensor([[[3.0, 0.0, -1.0], [8.0, 4.0, 0.0]]]))


def test_by_dot_it_is_the_tied_projection_without_its_bias():
    data, table = torch.randn(2, 3, 4), torch.randn(5, 4)
    assert_close(Attention(4, 5, 4)(data, table), Projection(4, 5, 4, tie=True)(data, table))


def test_a_cosine_knows_directions_and_its_sharpness_begins_at_the_scale():
    output = Attention(2, 3, 2, score="cosine", scale=10.0)
    assert_close(output(DATA, TABLE), torch.tensor([[[6.0, 0.0, -10.0], [8.0, 10.0, 0.0]]]))
    nn.init.constant_(output.sharpness, math.log(2.0))
    assert_close(output(DATA, TABLE), torch.tensor([[[1.2, 0.0, -2.0], [1.6, 2.0, 0.0]]]))


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "cosine", "distance", "bilinear", "additive", "concat", "softcap"])
def test_the_distribution_is_the_weights_of_attend(score):
    output, data, table = Attention(4, 5, 3, score=score), torch.randn(2, 3, 4), torch.randn(5, 3)
    keys = table[None, None].expand(2, 1, -1, -1)
    query = output.fit(data)[:, None]
    weights = attend(query, keys, keys, score=output.score, weights=True).weights[:, 0]
    assert_close(output(data, table).softmax(-1), weights)


def test_a_score_that_needs_one_size_has_its_query_fitted_and_others_take_it_as_it_is():
    assert Attention(4, 5, 3, score="dot").fit.weight.shape == (3, 4)
    assert isinstance(Attention(4, 5, 3, score="additive").fit, nn.Identity)
    assert isinstance(Attention(4, 5, 3, tie=False, score="dot").fit, nn.Identity)


def test_a_loose_output_has_keys_of_its_own():
    output = Attention(4, 5, 3, tie=False)
    data = torch.randn(1, 2, 4)
    assert_close(output(data, torch.randn(5, 3)), data @ output.weight.mT)


@pytest.mark.parametrize("score", ["rotary", "alibi", "t5", "location"])
def test_words_have_no_positions(score):
    with pytest.raises(ValueError, match=rf"model.output.score={score} looks at positions, and the words of a vocabulary"):
        find_score(score)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_is_above_zero(scale):
    with pytest.raises(ValueError, match="the output attention needs a scale above 0, got"):
        Attention(4, 5, 4, scale=scale)
