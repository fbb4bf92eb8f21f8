import torch
from torch import nn
from torch.testing import assert_close

from regard.models.layers.glu import Gate


def test_one_projection_opens_and_closes_the_other():
    gate = Gate(1, 2, nn.ReLU())
    with torch.no_grad():
        gate.W.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        gate.V.weight.copy_(torch.tensor([[3.0], [5.0]]))
        gate.W.bias.zero_()
        gate.V.bias.copy_(torch.tensor([1.0, 0.0]))
    assert gate(torch.tensor([[2.0], [-2.0]])).tolist() == [[14.0, 0.0], [0.0, -20.0]]


def test_without_bias_nothing_is_added():
    gate = Gate(3, 4, nn.SiLU(), bias=False)
    assert [name for name, _ in gate.named_parameters()] == ["W.weight", "V.weight"]
    data = torch.randn(5, 3)
    assert_close(gate(data), nn.functional.silu(data @ gate.W.weight.mT) * (data @ gate.V.weight.mT))
