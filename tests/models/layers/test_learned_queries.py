from functools import partial

import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.models.attention_factory import build_attention
from regard.models.layers.learned_queries import LearnedQueries


@pytest.mark.parametrize("name", ["transformer", "additive", "bilinear", "coverage", "scaled_dot+sparsemax"])
def test_every_query_reads_the_source_by_any_attention(name):
    queries = LearnedQueries(3, 6, 8, partial(build_attention, name, heads=2))
    keep = torch.tensor([[True] * 5, [True, True, False, False, False]])
    found = queries(Encoded(torch.randn(2, 5, 6), keep), weights=True)
    assert found.context.shape == (2, 3, 8)
    assert found.weights.shape[2:] == (3, 5)
    assert_close(found.weights.sum(-1), torch.ones(found.weights.shape[:3]))
    assert found.weights[1, ..., 2:].abs().sum() == 0


def test_weights_come_only_when_asked_for():
    assert LearnedQueries(2, 6, 8)(Encoded(torch.randn(1, 4, 6))).weights is None


def test_none_is_no_attention_and_zero_are_no_queries():
    with pytest.raises(ValueError, match="a learned query reads by an attention, and got none; name one"):
        LearnedQueries(1, 6, 8, partial(build_attention, "none"))
    with pytest.raises(ValueError, match="learned queries need to be 1 or more, got 0"):
        LearnedQueries(0, 6, 8)
