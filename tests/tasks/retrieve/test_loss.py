import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.tasks.retrieve.loss import contrastive, hard, reranking
from regard.tasks.retrieve.reranker import Scored


def test_it_is_the_cross_entropy_both_ways():
    logits, own = torch.randn(5, 5), torch.arange(5)
    loss = contrastive(logits)
    both = F.cross_entropy(logits, own, reduction="sum") + F.cross_entropy(logits.mT, own, reduction="sum")
    assert_close(loss.total, both / 2)
    assert loss.tokens == 5


def test_pairs_that_belong_together_too_are_not_wrong():
    logits = torch.tensor([[0.0, 9.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    same = torch.tensor([[True, True, False], [True, True, False], [False, False, True]])
    loss = contrastive(logits, same)
    assert_close(loss.total, torch.tensor(2 * math.log(2) + math.log(3)))


def test_only_the_hardest_wrong_answers_count():
    logits = torch.tensor([[0.0, 1.0, -5.0], [1.0, 0.0, -5.0], [-5.0, -5.0, 0.0]], requires_grad=True)
    loss = contrastive(logits, hardest=1)
    by_hand = 2 * math.log(1 + math.e) + math.log(1 + math.exp(-5))
    assert_close(loss.total, torch.tensor(by_hand))
    assert loss.parts["right"] == 1
    assert_close(contrastive(logits, hardest=99).total, contrastive(logits).total)


def test_one_pair_alone_costs_nothing():
    loss = contrastive(torch.randn(1, 1))
    assert loss.total == 0
    assert loss.parts["right"] == 1


@pytest.mark.parametrize("hardest", [None, 1])
def test_answers_that_are_equally_high_share_the_credit(hardest):
    assert contrastive(torch.ones(8, 8), hardest=hardest).parts["right"] == 1
    same = torch.eye(4, dtype=torch.bool)
    same[0, 1] = same[1, 0] = True  # the first two have three answers that count, the others four
    assert_close(contrastive(torch.ones(4, 4), same, hardest).parts["right"], torch.tensor(2 / 3 + 2 / 4))


@pytest.mark.parametrize("hardest", [0, -1])
def test_no_wrong_answer_at_all_is_refused(hardest):
    with pytest.raises(
        ValueError, match=f"hardest needs 1 wrong answer or more, got {hardest}; None lets all of them count"
    ):
        contrastive(torch.zeros(2, 2), hardest=hardest)


@pytest.mark.parametrize("of", [contrastive, hard])
def test_an_empty_batch_is_refused(of):
    with pytest.raises(ValueError, match="in batches of one pair or more, got none; leave empty batches out"):
        of(torch.zeros(0, 0))


def test_the_hardest_of_each_row_and_column():
    logits = torch.tensor([[9.0, 1.0, 2.0], [5.0, 9.0, 4.0], [6.0, 3.0, 9.0]])
    columns, rows = hard(logits)
    assert columns.tolist() == [2, 0, 0]
    assert rows.tolist() == [2, 2, 1]
    same = torch.eye(3, dtype=torch.bool)
    same[1, 0] = True
    assert hard(logits, same)[0].tolist() == [2, 2, 0]
    assert hard(logits, torch.ones(3, 3, dtype=torch.bool))[0].tolist() == [0, 1, 2]


@pytest.mark.unhooked
def test_tables_that_are_not_square_are_refused():
    with pytest.raises(ValueError, match=r"as many texts as pictures are needed, .* shape \(2, 3\)"):
        contrastive(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"`same` needs the shape of the logits, \(2, 2\), got \(3, 3\)"):
        contrastive(torch.zeros(2, 2), torch.eye(3, dtype=torch.bool))


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
