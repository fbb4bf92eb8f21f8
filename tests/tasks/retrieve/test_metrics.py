import torch

from regard.tasks.retrieve.metrics import FIGURES, figures


def test_figures_by_hand():
    scores = torch.zeros(12, 12) + torch.eye(12)
    scores[0, 0] = -1.0  # one picture finds its own text last, and one text its own picture
    right = torch.eye(12, dtype=torch.bool)
    found = figures(scores, scores.mT, right)
    assert tuple(found) == FIGURES
    assert found["text_recall1"].value == found["picture_recall10"].value == 100 * 11 / 12
    assert found["text_rank"].value == 1.0
    assert found["recall"].value == 100 * 11 / 12
    assert 0 < found["recall"].low < found["recall"].value < found["recall"].high <= 100
    assert found["text_recall5"].signature == "pictures whose text is among the first 5 of 12, in per cent"


def test_a_picture_may_have_two_texts_and_equal_scores_share_the_credit():
    scores = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    right = torch.tensor([[True, True, False], [False, False, True]])
    found = figures(scores, scores.mT, right)
    assert found["text_recall1"].value == 50  # the first picture finds the third text before its own
    assert found["text_rank"].value == 1.5
    assert found["picture_recall1"].value == 50  # found, level with the other, and second
    assert found["picture_rank"].value == 1.5
    assert found["recall"].value == (50 + 50 + 4 * 100) / 6
