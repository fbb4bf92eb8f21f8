import pytest
import torch

from regard.models.layers.dropout import Drop


def test_nothing_is_dropped_outside_training():
    data = torch.randn(2, 3, 4)
    drop = Drop(0.5, variational=True).eval()
    assert torch.equal(drop(data), data)
    assert drop.draw(data, 4) is None


def test_a_variational_mask_hides_the_same_at_every_step_of_a_row():
    dropped = Drop(0.5, variational=True)(torch.ones(8, 5, 16))
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(dropped[0], dropped[1])


def test_an_ordinary_mask_differs_from_step_to_step():
    dropped = Drop(0.5)(torch.ones(8, 5, 16))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(dropped[:, 0], dropped[:, 1])


def test_a_mask_that_is_given_is_used():
    drop = Drop(0.5, variational=True)
    data = torch.randn(2, 3, 4)
    mask = drop.draw(data, 4)
    assert mask.shape == (2, 4)
    assert torch.equal(drop(data, mask), data * mask[:, None])


@pytest.mark.parametrize("probability", [-0.1, 1.0])
def test_a_probability_that_is_none_is_refused(probability):
    with pytest.raises(ValueError, match="dropout needs a probability from 0 to below 1"):
        Drop(probability)


def test_it_says_what_it_is():
    assert repr(Drop(0.25)) == "Drop(0.25, variational=False)"
