import pytest
import torch
from torch import nn

from regard.viewer.record.no_side_effects import undisturbed


def test_modes_and_generators_are_as_before_also_after_an_error():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)).eval()).train()
    model[1].eval()
    before = [module.training for module in model.modules()]
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    with undisturbed(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        torch.rand(10)
    with pytest.raises(KeyError), undisturbed(model):
        raise KeyError
    assert [module.training for module in model.modules()] == before == [True, True, False, False]
    assert torch.equal(torch.rand(3), expected)
    assert torch.is_grad_enabled()
