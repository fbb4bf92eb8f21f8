import math

import pytest
import torch

from regard.losses.minimum_risk import minimum_risk

LOGS = torch.tensor([[math.log(0.5), math.log(0.25), 3.0]])
REWARDS = torch.tensor([[1.0, 0.4, 0.9]])
KEEP = torch.tensor([[True, True, False]])


def test_the_risk_is_what_is_lost_by_shares_of_likelihood():
    assert minimum_risk(LOGS, REWARDS, KEEP, 1.0).tolist() == pytest.approx([1 / 3 * 0.6])  # shares 2/3 and 1/3
    even = minimum_risk(LOGS, REWARDS, KEEP, 1e-9).item()
    assert even == pytest.approx(0.3)
    shares = [0.5**0.5, 0.25**0.5]
    assert minimum_risk(LOGS, REWARDS, KEEP, 0.5).item() == pytest.approx(0.6 * shares[1] / sum(shares))


def test_the_gradient_makes_the_better_output_likelier_and_leaves_nobody_alone():
    logs = LOGS.clone().requires_grad_()
    minimum_risk(logs, REWARDS, KEEP, 1.0).sum().backward()
    slope = 2 / 3 * 1 / 3 * 0.6  # Q (Δ - risk)
    assert logs.grad[0].tolist() == pytest.approx([-slope, slope, 0.0])


def test_one_output_alone_teaches_nothing():
    logs = LOGS[:, :1].clone().requires_grad_()
    minimum_risk(logs, REWARDS[:, 1:2], KEEP[:, :1], 1.0).sum().backward()
    assert logs.grad.item() == 0.0
