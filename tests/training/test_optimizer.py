import math

import pytest
import torch
from torch import nn

from regard.config import Train
from regard.errors import ConfigError
from regard.training import optimizer


def test_each_name_gives_its_optimiser():
    model = nn.Linear(2, 2)
    kinds = {
        name: type(optimizer.build_optimizer(model, Train(optimizer=name))).__name__ for name in ("adam", "adamw", "sgd")
    }
    assert kinds == {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}


def test_only_matrices_decay():
    made = optimizer.build_optimizer(nn.Linear(2, 2), Train(optimizer="adamw", weight_decay=0.1))
    assert [(group["params"][0].ndim, group["weight_decay"]) for group in made.param_groups] == [(2, 0.1), (1, 0.0)]


def test_the_schedules_of_transformers_bring_their_numbers():
    assert optimizer.build_optimizer(nn.Linear(2, 2), Train(schedule="noam")).defaults["betas"] == (0.9, 0.98)
    assert optimizer.build_optimizer(nn.Linear(2, 2), Train()).defaults["betas"] == (0.9, 0.999)


def test_a_model_that_cannot_learn_is_refused():
    with pytest.raises(ValueError, match="needs a model with parameters that learn"):
        optimizer.build_optimizer(nn.Linear(2, 2).requires_grad_(False), Train())


def test_gradients_of_a_sum_become_those_of_the_mean_cut_to_length():
    a, b, c = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    a.grad, b.grad = torch.tensor([30.0]), torch.tensor([40.0])
    assert optimizer.clip_gradient([a, b, c], 10, 2.5).item() == pytest.approx(5.0)  # (3, 4) has length 5
    assert (a.grad.item(), b.grad.item()) == pytest.approx((1.5, 2.0))
    assert c.grad is None


def test_short_gradients_are_left_as_they_are_and_zero_means_no_limit():
    for most in (6.0, 0.0):
        a = nn.Parameter(torch.zeros(1))
        a.grad = torch.tensor([50.0])
        assert optimizer.clip_gradient([a], torch.tensor(10.0), most).item() == pytest.approx(5.0)
        assert a.grad.item() == pytest.approx(5.0)


def test_no_tokens_and_no_gradient_are_no_trouble():
    a = nn.Parameter(torch.zeros(1))
    assert optimizer.clip_gradient([a], 3, 1.0).item() == 0.0
    a.grad = torch.zeros(1)
    assert optimizer.clip_gradient([a], 0, 1.0).item() == 0.0
    assert a.grad.item() == 0.0


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_an_optimiser_with_its_memory_back_goes_on_bit_for_bit(name):
    def run(model, made, steps):
        for step in steps:
            torch.manual_seed(step)
            made.zero_grad()
            model(torch.randn(4, 3)).square().sum().backward()
            made.step()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    made = optimizer.build_optimizer(model, Train(optimizer=name))
    run(model, made, range(3))
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    other.load_state_dict(model.state_dict())
    again = optimizer.build_optimizer(other, Train(optimizer=name))
    optimizer.restore(other, again, optimizer.state(model, made))
    run(model, made, range(3, 6))
    run(other, again, range(3, 6))
    for left, right in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(left, right)


def test_the_memory_is_named_by_parameter():
    model = nn.Linear(3, 2)
    made = optimizer.build_optimizer(model, Train())
    model(torch.ones(1, 3)).sum().backward()
    made.step()
    assert set(optimizer.state(model, made)) == {
        f"{name}.{what}" for name in ("weight", "bias") for what in ("step", "exp_avg", "exp_avg_sq")
    }


def test_the_rate_is_set_for_all_groups():
    made = optimizer.build_optimizer(nn.Linear(2, 2), Train())
    optimizer.set_learning_rate(made, 0.125)
    assert [group["lr"] for group in made.param_groups] == [0.125, 0.125]


def test_a_loss_with_parameters_is_optimised_beside_the_model():
    model, loss = nn.Linear(2, 2), nn.Linear(3, 1)
    made = optimizer.build_optimizer(model, Train(), loss)
    assert optimizer.list_names(model, made, loss) == ["weight", "loss.weight", "bias", "loss.bias"]
    assert list(optimizer.named_parameters(model, loss)) == ["weight", "bias", "loss.weight", "loss.bias"]
    assert list(optimizer.named_parameters(model)) == ["weight", "bias"]


def test_a_fused_step_is_told_on_the_device_whether_to_be_taken():
    model = nn.Linear(2, 1)
    fused = torch.optim.AdamW(model.parameters(), 0.1, fused=True)
    assert optimizer.is_fused(fused)
    assert not optimizer.is_fused(torch.optim.AdamW(model.parameters(), 0.1))
    assert not optimizer.is_fused(torch.optim.SGD(model.parameters(), 0.1))
    before = model.weight.detach().clone()
    for bad in (True, False):
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step_unless(fused, torch.tensor(bad))
        assert torch.equal(model.weight, before) is bad
    assert fused.state[model.weight]["step"].item() == 1  # one that is not taken does not count
    assert not hasattr(fused, "found_inf")


def test_a_module_with_a_pace_learns_at_its_part_of_the_rate():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].pace = 0.5
    made = optimizer.build_optimizer(model, Train(learning_rate=0.25))
    optimizer.set_learning_rate(made, 0.125)
    rates = {id(each): group["lr"] for group in made.param_groups for each in group["params"]}
    assert [rates[id(each)] for each in model.parameters()] == [0.125, 0.125, 0.0625, 0.0625]
    assert [(group["params"][0].ndim, group["pace"]) for group in made.param_groups] == [
        (2, 0.5),
        (2, 1.0),
        (1, 0.5),
        (1, 1.0),
    ]


def test_a_pace_of_one_over_the_root_is_a_score_over_the_root():
    """q W k with W at the pace 1/4 goes the way of q V k / 4, so that W = V / 4 throughout."""
    slow, scaled = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
    slow.pace = 0.25
    with torch.no_grad():
        slow.weight.copy_(scaled.weight / 4)
    query, key = torch.randn(2, 8, 16)
    for model, scale in ((slow, 1.0), (scaled, 0.25)):
        made = optimizer.build_optimizer(model, Train(learning_rate=0.01))
        for step in range(20):
            made.zero_grad()
            (-(query @ model(key).mT * scale).log_softmax(-1).diagonal().sum()).backward()
            optimizer.set_learning_rate(made, 0.01 / (step + 1))
            made.step()
    torch.testing.assert_close(slow.weight, scaled.weight / 4)


@pytest.mark.parametrize("rate", [1e18, 1e30, 1e308, math.inf, math.nan])
def test_a_learning_rate_that_leaves_float32_is_refused_by_its_setting(rate):
    made = optimizer.build_optimizer(nn.Linear(2, 2), Train())
    with pytest.raises(
        ConfigError, match=r"train.learning_rate is too large: with train.schedule it gives a learning rate of .*1e\+18"
    ):
        optimizer.set_learning_rate(made, rate)
