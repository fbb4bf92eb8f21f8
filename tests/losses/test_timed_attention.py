import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Attended
from regard.losses.timed_attention import timed_attention_loss


def attended(weights):
    return {"decoder.cross": Attended(torch.zeros(1), torch.tensor(weights)[None, None])}


def test_it_is_the_logarithm_of_the_attention_inside_and_tokens_without_times_are_free():
    weights = [[0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]
    frames = torch.tensor([[[0, 2], [2, 4], [1, 1], [0, 1]]])
    keep = torch.tensor([[True, True, True, False]])
    loss = timed_attention_loss(attended(weights), frames, keep)
    assert_close(loss, torch.tensor(-math.log(0.75) - math.log(0.7)))


def test_attention_that_is_all_outside_has_a_finite_loss_and_gradient():
    weights = torch.tensor([[[[1.0, 0.0]]]], requires_grad=True)
    loss = timed_attention_loss(
        {"decoder.cross": Attended(torch.zeros(1), weights)}, torch.tensor([[[1, 2]]]), torch.tensor([[True]])
    )
    loss.backward()
    assert_close(loss, torch.tensor(-math.log(1e-6)))
    assert weights.grad.isfinite().all()


def test_without_weights_it_is_refused():
    with pytest.raises(ValueError, match="needs the weights of an attention over frames, got none"):
        timed_attention_loss({}, torch.zeros(1, 1, 2, dtype=torch.long), torch.ones(1, 1, dtype=torch.bool))
