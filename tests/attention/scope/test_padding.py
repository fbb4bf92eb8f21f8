import re

import pytest
import torch

from regard.attention.scope.padding import Padding


def test_a_query_sees_the_keys_that_are_there(draw):
    padding = Padding(torch.tensor([[True, True, False], [True, False, True]]))
    assert draw(padding, 2, 3, row=0, batch=2) == ["110", "110"]
    assert draw(padding, 2, 3, row=1, batch=2) == ["101", "101"]


def test_a_mask_may_come_from_lengths():
    assert Padding.from_lengths(torch.tensor([3, 1, 0])).keep.int().tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert Padding.from_lengths(torch.tensor([2, 1]), keys=4).keep.int().tolist() == [[1, 1, 0, 0], [1, 0, 0, 0]]


def test_the_position_of_the_query_does_not_matter(draw):
    padding = Padding(torch.tensor([[True, False]]))
    assert draw(padding, 2, 2, offset=5) == ["10", "10"]


def test_a_sample_has_rows_of_falling_length():
    assert Padding.sample(batch=4, keys=3).keep.int().tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]]


def test_a_mask_for_other_sizes_is_refused():
    padding = Padding(torch.ones(2, 3, dtype=torch.bool))
    text = "Padding was made for (2, 3) (batch, keys), and met a batch of {} with {} keys"
    for batch, keys in ((4, 3), (2, 5)):
        with pytest.raises(ValueError, match=re.escape(text.format(batch, keys))):
            padding.allowed(batch, 1, 1, keys, 0, torch.device("cpu"))


@pytest.mark.unhooked
def test_a_mask_that_is_not_boolean_is_refused():
    text = (
        "Padding needs a boolean mask, True where a key may be seen, got torch.float32; "
        "compare it with something (mask > 0), or use Padding.from_lengths"
    )
    with pytest.raises(TypeError, match=re.escape(text)):
        Padding(torch.ones(2, 3))


@pytest.mark.unhooked
def test_a_mask_of_another_rank_is_refused():
    with pytest.raises(ValueError, match=re.escape("Padding needs a mask of (batch, keys), got (2, 1, 3)")):
        Padding(torch.ones(2, 1, 3, dtype=torch.bool))
