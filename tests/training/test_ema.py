import pytest
import torch
from torch import nn

from regard.errors import DamagedWarning, FailedError
from regard.training import checkpoint
from regard.training.ema import WeightAverage, mean, mean_of_checkpoints, saved_weights

from .small import Network


def test_the_moving_average_follows_its_formula():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    average = WeightAverage(model, 0.5)
    nn.init.constant_(model.weight, 3.0)
    average.update(model, 0)  # d = min(0.5, 1 / 10): 0.1 * 1 + 0.9 * 3
    assert average.values["weight"].item() == pytest.approx(2.8)
    average.update(model, 1000)  # d = 0.5
    assert average.values["weight"].item() == pytest.approx(2.9)


def test_inside_the_model_has_the_average_and_afterwards_its_own_even_after_an_error():
    model = Network()
    own = {name: value.clone() for name, value in model.named_parameters()}
    average = WeightAverage(model, 0.9)
    for value in average.values.values():
        value.fill_(0.5)

    def use():
        with average.inside(model):
            assert all((value == 0.5).all() for value in model.parameters())
            assert model.output.weight is model.embedding.weight
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        use()
    for name, value in model.named_parameters():
        assert torch.equal(value, own[name])
    assert all((value == 0.5).all() for value in average.values.values())


def test_a_decay_of_one_or_more_is_refused():
    with pytest.raises(ValueError, match=r"train.ema_decay needs to be from 0 up to but not including 1, got 1.0"):
        WeightAverage(nn.Linear(1, 1), 1.0)


def test_the_mean_of_weights_is_their_mean_and_whole_numbers_are_the_last():
    sets = [{"a": torch.tensor([float(n)]), "n": torch.tensor(n)} for n in (1, 2, 6)]
    assert mean(sets)["a"].item() == 3.0
    assert mean(sets)["n"].item() == 6


def test_moving_averages_are_averaged_where_there_are_any(tmp_path):
    for step, value in ((1, 1.0), (2, 3.0)):
        tensors = {
            "model.a": torch.tensor(0.0),
            "model.b": torch.tensor(value),
            "ema.a": torch.tensor(value),
            "optimiser.a.m": torch.tensor(9.0),
        }
        checkpoint.save(tmp_path, step, tensors, {})
    assert {name: value.item() for name, value in mean_of_checkpoints(tmp_path, [1, 2]).items()} == {"a": 2.0, "b": 2.0}
    assert set(saved_weights(tensors)) == {"a", "b"}


def test_the_average_does_without_a_damaged_checkpoint(tmp_path):
    for step in (1, 2):
        checkpoint.save(tmp_path, step, {"model.a": torch.tensor(float(step))}, {})
    (tmp_path / "2" / "state.safetensors").write_bytes(b"")
    with pytest.warns(DamagedWarning, match="the average does without it"):
        assert mean_of_checkpoints(tmp_path, [1, 2])["a"].item() == 1.0
    (tmp_path / "1" / "manifest.json").unlink()
    with pytest.warns(DamagedWarning), pytest.raises(FailedError, match="none of the checkpoints to average"):
        mean_of_checkpoints(tmp_path, [1, 2])
