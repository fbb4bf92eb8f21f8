import math

import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.models.layers.log_mixture import masked_log, mix_distributions, to_float32


def test_distributions_are_added_by_their_shares():
    # softmax gives (1/4, 3/4) and (4/5, 1/5); a quarter of the one and three of the other are (0.6625, 0.3375)
    logits = torch.tensor([[[[0.0, math.log(3.0)], [math.log(4.0), 0.0]]]])
    found = mix_distributions(logits, torch.tensor([[[0.25, 0.75]]]))
    assert_close(found.exp(), torch.tensor([[[0.6625, 0.3375]]]))


def test_logits_may_stand_anywhere():
    logits = torch.randn(2, 3, 4, 5)
    shares = torch.rand(2, 3, 4).softmax(-1)
    assert_close(mix_distributions(logits + torch.randn(2, 3, 4, 1), shares), mix_distributions(logits, shares))
    assert_close(mix_distributions(logits, shares).exp().sum(-1), torch.ones(2, 3))


def test_what_is_far_too_small_for_a_probability_has_its_logarithm_and_its_gradient():
    logits = torch.tensor([[[[0.0, 500.0], [0.0, 600.0]]]], requires_grad=True)
    found = mix_distributions(logits, torch.tensor([[[0.5, 0.5]]]))
    assert_close(found[0, 0], torch.tensor([-500 - math.log(2), 0.0]))
    found[0, 0, 0].backward()
    assert_close(logits.grad[0, 0, 0], torch.tensor([1.0, -1.0]))


def test_a_part_without_a_share_contributes_nothing_and_learns_nothing():
    logits, shares = torch.randn(1, 2, 3, 4), torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]])
    logits.requires_grad_()
    shares.requires_grad_()
    found = mix_distributions(logits, shares)
    assert_close(found[:, :1], mix_distributions(logits[:, :1, :2], shares[:, :1, :2]))
    assert_close(found[:, 1], logits[:, 1, 0].log_softmax(-1))
    found.square().sum().backward()
    assert not logits.grad[0, 0, 2].any()
    assert logits.grad.isfinite().all()
    assert shares.grad.isfinite().all()


def test_gradients_equal_small_differences():
    logits = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    shares = torch.rand(1, 2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(mix_distributions, (logits, shares))


def test_the_logarithm_of_nothing_is_infinite_and_its_gradient_is_zero():
    shares = torch.tensor([1.0, 0.0, 0.5], requires_grad=True)
    found = masked_log(shares)
    assert_close(found, torch.tensor([0.0, -math.inf, -math.log(2)]))
    found.exp().sum().backward()
    assert_close(shares.grad, torch.tensor([1.0, 0.0, 1.0]))


def test_half_precision_is_widened_and_double_stays():
    assert mix_distributions(torch.randn(1, 1, 2, 3).bfloat16(), torch.tensor([[[0.5, 0.5]]])).dtype == torch.float32
    assert to_float32(torch.zeros(2, dtype=torch.float64)).dtype == torch.float64
