import math

import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.tasks.retrieve.reranker import Scored
from regard.tasks.retrieve.reranking_loss import reranking


def score(picture, text):
    """The product of the first numbers of both."""
    return Scored(picture.data[:, 0, 0] * text.data[:, 0, 0])


def source(*numbers):
    return Encoded(torch.tensor(numbers)[:, None, None])


def test_each_pair_stands_beside_the_two_hardest_wrong_ones():
    logits = torch.tensor([[9.0, 1.0, 2.0], [5.0, 9.0, 4.0], [6.0, 3.0, 9.0]])
    # the hardest texts of pictures 0, 1, 2 are 2, 0, 0; the hardest pictures of texts 0, 1, 2 are 2, 2, 1
    picture, text = (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)
    loss = reranking(score, source(*picture), source(*text), logits)
    expected = 0.0
    for own, other_text, other_picture in ((0, 2, 2), (1, 0, 2), (2, 0, 1)):
        right = picture[own] * text[own]
        wrong = picture[own] * text[other_text], picture[other_picture] * text[own]
        expected += math.log(sum(map(math.exp, (right, *wrong)))) - right
    assert_close(loss.total, torch.tensor(expected))
    assert loss.tokens == 3


def test_a_batch_without_wrong_pairs_costs_nothing():
    loss = reranking(score, source(1.0, 2.0), source(3.0, 4.0), torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool))
    assert loss.total == 0
    assert loss.parts["right"] == 2


def test_pairs_that_score_equally_share_the_credit():
    loss = reranking(score, source(1.0, 1.0, 1.0), source(2.0, 2.0, 2.0), torch.zeros(3, 3))
    assert_close(loss.parts["right"], torch.tensor(1.0))  # three pairs, each one of three that are level
    assert reranking(score, source(1.0), source(2.0), torch.zeros(1, 1)).parts["right"] == 1


def test_how_much_a_closer_look_counts_beside_the_towers_is_learned_alone():
    logits = torch.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    picture, share = torch.tensor([1.0, 2.0]).view(2, 1, 1).requires_grad_(), torch.tensor(0.5, requires_grad=True)
    plain = reranking(score, Encoded(picture), source(1.0, 3.0), logits)
    loss = reranking(score, Encoded(picture), source(1.0, 3.0), logits, share=share)
    # 1 · 1, 1 · 3 and 2 · 1 for the first pair, 2 · 3, 2 · 1 and 1 · 3 for the second, halved and added to the logits
    rows = (2.0 + 0.5, 1.0 + 1.5, 0.0 + 1.0), (3.0 + 3.0, 0.0 + 1.0, 1.0 + 1.5)
    assert_close(loss.total - plain.total, torch.tensor(sum(math.log(sum(map(math.exp, row))) - row[0] for row in rows)))
    assert loss.parts == plain.parts
    [alone] = torch.autograd.grad(plain.total, picture)
    loss.total.backward()
    assert_close(picture.grad, alone)
    assert logits.grad is None
    assert share.grad != 0
