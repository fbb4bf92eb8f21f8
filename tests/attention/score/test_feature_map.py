import math
import re

import pytest
import torch
from torch.nn import functional as F

from regard.attention import attend
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.score.feature_map import FeatureMap


def test_features_are_multiplied_and_added():
    query, key = torch.tensor([[[[1.0, -1.0]]]]), torch.tensor([[[[0.0, 2.0], [-1.0, 0.5]]]])
    # φ(q) = [2, 1/e];  φ(k) = [1, 3] and [1/e, 1.5]
    found = FeatureMap()(query, FeatureMap().prepare(key))
    expected = [2 + 3 / math.e, 2 / math.e + 1.5 / math.e]
    torch.testing.assert_close(found[0, 0, 0], torch.tensor(expected))


def test_relu_keeps_what_is_positive():
    query, key = torch.tensor([[[[1.0, -1.0]]]]), torch.tensor([[[[3.0, 2.0], [-1.0, 0.5]]]])
    score = FeatureMap(phi="relu")
    assert score(query, score.prepare(key)).tolist() == [[[[3.0, 0.0]]]]


def test_a_query_without_features_reads_nothing():
    query, key = torch.full((1, 1, 1, 2), -1.0, requires_grad=True), torch.ones(1, 1, 3, 2)
    for impl in ("auto", "reference"):
        context = attend(query, key, key, score=FeatureMap(phi="relu"), normalise=SumToOne(), impl=impl).context
        assert context.tolist() == [[[[0.0, 0.0]]]]
        assert torch.autograd.grad(context.sum(), query)[0].tolist() == [[[[0.0, 0.0]]]]


def test_the_feature_is_elu_and_one_and_so_is_its_slope():
    ours = torch.linspace(-4, 4, 9, dtype=torch.float64).view(1, 1, 9, 1).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    found, expected = FeatureMap().project(ours), F.elu(theirs) + 1
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert ours.grad[0, 0, 4].item() == 1  # at zero, where two pieces meet


def test_small_features_do_not_vanish_beside_a_one():
    far = torch.full((1, 1, 1, 1), -20.0)
    assert (F.elu(far) + 1).item() == 0
    assert FeatureMap().project(far).item() == pytest.approx(math.exp(-20), rel=1e-6)


def test_sizes_must_agree():
    with pytest.raises(
        ValueError, match="FeatureMap needs queries and keys of one size, got 2 and 3; Bilinear and Additive"
    ):
        FeatureMap()(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 3))


def test_an_unknown_feature_is_refused():
    with pytest.raises(ValueError, match=re.escape("FeatureMap needs phi to be one of elu, relu, got 'tanh'")):
        FeatureMap(phi="tanh")
