import pytest
import torch
from torch import nn

from regard.errors import RefusedError
from regard.training.state_dict import named_tensors, restore, weights

from .small import Network


def test_tied_weights_come_once_and_buffers_come_too():
    names = set(weights(Network()))
    assert "embedding.weight" in names
    assert "output.weight" not in names
    assert "scale" in names


def test_weights_go_back_into_a_model_and_tied_ones_stay_tied():
    first, second = Network(), Network()
    restore(second, weights(first))
    assert second.output.weight is second.embedding.weight
    for name, tensor in named_tensors(first).items():
        assert torch.equal(tensor, named_tensors(second)[name])


def test_a_model_that_does_not_fit_is_refused_by_the_name_of_the_first_difference():
    model = nn.Linear(3, 2)
    good = weights(model)
    before = model.weight.clone()
    cases = [
        ({"weight": good["weight"]}, r"it has no bias, which this model needs with shape \(2,\)"),
        ({**good, "weight": torch.zeros(2, 4)}, r"weight has shape \(2, 4\) there and \(2, 3\) here"),
        ({**good, "weight": good["weight"].double()}, r"weight has type torch.float64 there and torch.float32 here"),
        ({**good, "extra": torch.zeros(1)}, r"it has extra with shape \(1,\), which this model has no place for"),
    ]
    for tensors, text in cases:
        with pytest.raises(RefusedError, match="run/5 is of another model: " + text):
            restore(model, tensors, "run/5")
    assert torch.equal(model.weight, before)
