import pytest
import torch
from torch.testing import assert_close

from regard.models.residual import Residual, feedforward

DATA = torch.tensor([[[1.0, 3.0]]])


def test_pre_norms_what_the_sublayer_gets_and_adds_to_the_rest():
    residual = Residual(2, "pre")
    assert_close(residual.enter(DATA), torch.tensor([[[-1.0, 1.0]]]), atol=1e-4, rtol=0)
    assert_close(residual.leave(DATA, DATA), 2 * DATA)


def test_post_norms_the_sum():
    residual = Residual(2, "post")
    assert residual.enter(DATA) is DATA
    assert_close(residual.leave(DATA, DATA), torch.tensor([[[-1.0, 1.0]]]), atol=1e-4, rtol=0)


def test_dropout_falls_on_what_was_found_and_not_on_the_way_around():
    found = Residual(64, "pre", dropout=0.5).leave(torch.zeros(1, 1, 64), torch.ones(1, 1, 64))
    assert set(found.unique().tolist()) == {0.0, 2.0}


def test_a_norm_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="norm needs to be 'pre' or 'post', got 'both'"):
        Residual(2, "both")


def test_the_feedforward_network_has_one_hidden_layer():
    network = feedforward(2, 5)
    W1, b1, W2, b2 = network.parameters()
    assert_close(network(DATA), (DATA @ W1.mT + b1).clamp_min(0) @ W2.mT + b2)
    assert W1.shape == (5, 2)
