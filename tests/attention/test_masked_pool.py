import pytest
import torch
from torch.testing import assert_close

from regard.attention.masked_pool import everywhere, hide, largest, lowest, mean, share

IMAGE = torch.tensor([[[[-1.0, -3.0], [5.0, 7.0]]], [[[2.0, 4.0], [6.0, 8.0]]]])
KEEP = torch.tensor([[[True, True], [False, False]], [[False, False], [False, False]]])


def test_what_is_hidden_is_zero_whatever_stood_there():
    assert hide(IMAGE.masked_fill(~KEEP[:, None], torch.nan), KEEP)[0, 0].tolist() == [[-1, -3], [0, 0]]
    assert hide(IMAGE, None) is IMAGE


def test_where_all_is_kept_nothing_is_copied():
    assert hide(IMAGE, torch.ones_like(KEEP)) is IMAGE
    assert everywhere(torch.ones_like(KEEP))
    assert not everywhere(KEEP)


def test_numbers_are_those_of_the_kept_places_and_zero_where_there_are_none():
    assert mean(IMAGE, KEEP).tolist() == [[-2.0], [0.0]]
    assert largest(IMAGE, KEEP).tolist() == [[-1.0], [0.0]]
    assert mean(IMAGE, None).tolist() == [[2.0], [5.0]]
    assert largest(IMAGE, None).tolist() == [[7.0], [8.0]]
    assert share(KEEP).tolist() == [2.0, 4.0]


def test_outside_nobody_finds_the_largest():
    assert lowest(IMAGE, KEEP)[0, 0, 1].tolist() == [torch.finfo(torch.float32).min] * 2
    assert lowest(IMAGE, None) is IMAGE


@pytest.mark.parametrize("number", [mean, largest])
def test_no_gradient_reaches_what_is_hidden(number):
    image = IMAGE.clone().requires_grad_()
    number(image, KEEP).sum().backward()
    assert image.grad.isfinite().all()
    assert not image.grad.masked_select(~KEEP[:, None]).any()
    assert image.grad[0, 0, 0].any()


def test_half_precision_does_not_overflow():
    image, keep = torch.full((1, 1, 200, 200), 100.0, dtype=torch.float16), torch.ones(1, 200, 200, dtype=torch.bool)
    keep[:, 100:] = False
    assert_close(mean(image, keep), torch.full((1, 1), 100.0, dtype=torch.float16))
