import torch
from torch.testing import assert_close

from regard.tasks.classify.glimpse_model import GlimpseOutput
from regard.tasks.classify.loss import average_probabilities, reinforce_loss


def found(logits, log_probabilities, baselines):
    return GlimpseOutput(logits, torch.zeros(len(logits), 2, 2), log_probabilities, baselines)


def test_the_figure_is_by_hand():
    logits = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    loss = reinforce_loss(
        found(logits, torch.full((2, 2), -5.0), torch.tensor([[0.5, 0.5], [1.0, 0.0]])), torch.tensor([1, 0])
    )
    said = torch.log(torch.tensor(2.0)) + torch.log1p(torch.exp(torch.tensor(-3.0)))
    # the first is wrong and was expected to be right by half at each glimpse; the second is right, once surely and once not
    assert_close(loss.total, said + (0.25 + 0.25) / 2 + (0 + 1) / 2)
    assert loss.parts["right"] == 1
    assert loss.tokens == 2


def test_a_point_that_led_to_more_than_was_expected_becomes_likelier():
    log_probabilities, baselines = torch.zeros(2, 2, requires_grad=True), torch.full((2, 2), 0.25, requires_grad=True)
    loss = reinforce_loss(found(torch.tensor([[0.0, 9.0], [0.0, 9.0]]), log_probabilities, baselines), torch.tensor([1, 0]))
    loss.total.backward()
    assert_close(log_probabilities.grad, torch.tensor([[-0.75, -0.75], [0.25, 0.25]]))
    assert_close(baselines.grad, torch.tensor([[-0.75, -0.75], [0.25, 0.25]]))  # towards what came


def test_runs_are_averaged_as_probabilities():
    runs = torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]])
    assert_close(average_probabilities(runs).exp(), torch.tensor([[0.5, 0.5]]))
