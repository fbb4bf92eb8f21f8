import torch

from regard.attention import attend
from regard.attention.normalise.identity import Identity
from regard.attention.score.dot import Dot


def test_the_scores_are_the_weights():
    scores = torch.tensor([[[[-2.0, 0.0, 5.0]]]])
    assert Identity()(scores).flatten().tolist() == [-2.0, 0.0, 5.0]


def test_what_is_not_allowed_gets_nothing():
    allowed = torch.tensor([[[[True, False, True]]]])
    assert Identity()(torch.tensor([[[[-2.0, 3.0, 5.0]]]]), allowed).flatten().tolist() == [-2.0, 0.0, 5.0]
    assert Identity()(torch.tensor([[[[-2.0, 3.0, 5.0]]]]), ~(allowed | True)).flatten().tolist() == [0.0, 0.0, 0.0]


def test_with_dot_the_context_is_the_product_of_three_matrices():
    query = torch.tensor([[[[1.0, 2.0], [0.0, 1.0]]]])
    key = torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]])
    value = torch.tensor([[[[1.0, 0.0], [0.0, 10.0]]]])
    # Q Kᵀ = [[1, 3], [0, 1]], and the second column is worth ten
    context = attend(query, key, value, score=Dot(), normalise=Identity()).context
    assert context[0, 0].tolist() == [[1.0, 30.0], [0.0, 10.0]]
    # which is Q (Kᵀ V) as well, as in linear attention
    torch.testing.assert_close(context, query @ (key.mT @ value))


def test_large_scores_stay_as_they_are():
    assert Identity()(torch.tensor([[[[1e4, -1e4]]]], dtype=torch.float16)).flatten().tolist() == [1e4, -1e4]
