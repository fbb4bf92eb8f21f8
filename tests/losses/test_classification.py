import math

import pytest
import torch
from torch.testing import assert_close

from regard.losses.classification import compute_accuracy, compute_credit, compute_f1, multi_label_loss, single_label_loss


def test_one_label_by_hand():
    loss = single_label_loss(torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]), torch.tensor([0, 1]))
    assert_close(loss.total, torch.tensor(math.log(2) + math.log(4)))
    assert (loss.tokens, loss.parts["right"]) == (2, 0.5)  # the first by half: two labels are equally high


def test_any_labels_by_hand():
    loss = multi_label_loss(torch.tensor([[0.0, math.log(3)]]), torch.tensor([[True, False]]))
    assert_close(loss.total, torch.tensor(math.log(2) + math.log(4)))
    assert (loss.tokens, loss.parts["right"]) == (1, 0)


def test_smoothing_pulls_answers_from_certainty():
    logits = torch.tensor([[9.0, -9.0]], requires_grad=True)
    multi_label_loss(logits, torch.tensor([[True, False]]), smoothing=0.1).total.backward()
    assert logits.grad[0, 0] > 0 > logits.grad[0, 1]


@pytest.mark.unhooked
def test_a_list_in_the_place_of_a_table_is_refused():
    with pytest.raises(ValueError, match=r"need the shape of the logits, \(2, 3\) .* got \(1, 3\)"):
        multi_label_loss(torch.zeros(2, 3), torch.ones(1, 3, dtype=torch.bool))


def test_measures_by_hand():
    wanted = torch.tensor([[True, True, False], [False, True, False]])
    assert compute_f1(torch.tensor([[1.0, -1, 1], [-1, 1, -1]]), wanted) == pytest.approx(2 * 2 / (3 + 3))
    assert compute_f1(-torch.ones(1, 2), torch.zeros(1, 2, dtype=torch.bool)) == 1.0
    assert compute_accuracy(torch.tensor([[1.0, 0], [0, 1], [1, 1]]), torch.tensor([0, 0, 1])) == pytest.approx(0.5)
    assert math.isnan(compute_accuracy(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long)))


def test_labels_that_are_equally_high_share_the_credit():
    logits = torch.tensor([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.0, 0.0], [2.0, 2.0, 3.0, 0.0]])
    assert compute_credit(logits, torch.tensor([3, 0, 2])).tolist() == [0.25, 0.5, 1.0]
    assert compute_credit(logits, torch.tensor([0, 2, 0])).tolist() == [0.25, 0.0, 0.0]
    assert single_label_loss(torch.zeros(8, 4), torch.zeros(8, dtype=torch.long)).parts["right"] == 2
