import torch

from regard.losses.types import Loss
from regard.training.step import StepResult


def test_numbers_come_per_token():
    loss = Loss(torch.tensor(6.0), torch.tensor(3), {"nll": torch.tensor(1.5), "x": 3.0})
    assert StepResult(loss, torch.tensor(0.5)).fetch() == (2.0, 3, 0.5, {"nll": 0.5, "x": 1.0})


def test_without_tokens_nothing_is_divided_by_nothing():
    assert StepResult(Loss(torch.tensor(0.0), 0), torch.tensor(0.0)).fetch() == (0.0, 0, 0.0, {})


def test_what_changes_afterwards_changes_no_figure():
    total = torch.tensor(6.0)
    outcome = StepResult(Loss(total, 3), torch.tensor(0.5))
    total.fill_(0.0)
    assert outcome.fetch().loss == 2.0
