import pytest
import torch

from regard.losses.self_critical import self_critical

REWARDS = torch.tensor([[1.0, 0.4, 9.0]])
KEEP = torch.tensor([[True, True, False]])


def test_the_figure_is_the_mean_loss_and_the_gradient_what_was_better_than_expected():
    logs = torch.tensor([[-1.0, -2.0, 7.0]], requires_grad=True)
    found = self_critical(logs, REWARDS, KEEP, torch.tensor([0.5]))
    assert found.tolist() == pytest.approx([0.3])
    found.sum().backward()
    assert logs.grad[0].tolist() == pytest.approx([-0.25, 0.05, 0.0])  # -(r - 0.5) / 2


def test_what_is_as_good_as_expected_teaches_nothing():
    logs = torch.tensor([[-1.0]], requires_grad=True)
    self_critical(logs, torch.tensor([[0.5]]), torch.tensor([[True]]), torch.tensor([0.5])).sum().backward()
    assert logs.grad.item() == 0.0
