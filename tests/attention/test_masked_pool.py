import pytest
import torch
from torch.testing import assert_close

from regard.attention.masked_pool import (
    compute_masked_max,
    compute_masked_mean,
    compute_mean_factor,
    fill_lowest,
    keeps_all,
    zero_padding,
)

IMAGE = torch.tensor([[[[-1.0, -3.0], [5.0, 7.0]]], [[[2.0, 4.0], [6.0, 8.0]]]])
KEEP = torch.tensor([[[True, True], [False, False]], [[False, False], [False, False]]])


def test_what_is_hidden_is_zero_whatever_stood_there():
    assert zero_padding(IMAGE.masked_fill(~KEEP[:, None], torch.nan), KEEP)[0, 0].tolist() == [[-1, -3], [0, 0]]
    assert zero_padding(IMAGE, None) is IMAGE


def test_where_all_is_kept_nothing_is_copied():
    assert zero_padding(IMAGE, torch.ones_like(KEEP)) is IMAGE
    assert keeps_all(torch.ones_like(KEEP))
    assert not keeps_all(KEEP)


def test_numbers_are_those_of_the_kept_places_and_zero_where_there_are_none():
    assert compute_masked_mean(IMAGE, KEEP).tolist() == [[-2.0], [0.0]]
    assert compute_masked_max(IMAGE, KEEP).tolist() == [[-1.0], [0.0]]
    assert compute_masked_mean(IMAGE, None).tolist() == [[2.0], [5.0]]
    assert compute_masked_max(IMAGE, None).tolist() == [[7.0], [8.0]]
    assert compute_mean_factor(KEEP).tolist() == [2.0, 4.0]


def test_outside_nobody_finds_the_largest():
    assert fill_lowest(IMAGE, KEEP)[0, 0, 1].tolist() == [torch.finfo(torch.float32).min] * 2
    assert fill_lowest(IMAGE, None) is IMAGE


@pytest.mark.parametrize("number", [compute_masked_mean, compute_masked_max])
def test_no_gradient_reaches_what_is_hidden(number):
    image = IMAGE.clone().requires_grad_()
    number(image, KEEP).sum().backward()
    assert image.grad.isfinite().all()
    assert not image.grad.masked_select(~KEEP[:, None]).any()
    assert image.grad[0, 0, 0].any()


def test_half_precision_does_not_overflow():
    image, keep = torch.full((1, 1, 200, 200), 100.0, dtype=torch.float16), torch.ones(1, 200, 200, dtype=torch.bool)
    keep[:, 100:] = False
    assert_close(compute_masked_mean(image, keep), torch.full((1, 1), 100.0, dtype=torch.float16))
