import os

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.models.layers import feedforward
from regard.models.layers.feedforward import FeedForward, Gate, covers

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and feedforward.INSTALLED
runs = pytest.mark.skipif(not INTERPRETED, reason="runs in Triton's interpreter; benchmarks/parity.py checks on a GPU")


def network(bend=None, bias=True):
    return FeedForward(nn.Linear(4, 9, bias), bend or nn.ReLU(), nn.Linear(9, 4, bias))


def thought(made, data, flow):
    found = made(data)
    return [found.detach(), *torch.autograd.grad(found, [data, *made.parameters()], flow)]


@runs
@pytest.mark.parametrize(("shape", "last"), [((3, 5, 4), True), ((1, 1, 4), False)])
def test_it_equals_its_parts_one_after_the_other_and_so_does_every_gradient(monkeypatch, shape, last):
    made, data, flow = network(), torch.randn(shape, requires_grad=True), torch.randn(shape)
    if not last:
        made[2].bias = None
    expected = thought(made, data, flow)
    monkeypatch.setattr(feedforward, "DEVICES", ("cpu",))
    used = []
    monkeypatch.setattr(
        feedforward.FusedFeedForward,
        "apply",
        lambda *given, run=feedforward.FusedFeedForward.apply: used.append(1) or run(*given),
    )
    for one, other in zip(thought(made, data, flow), expected, strict=True):
        torch.testing.assert_close(one, other)
    assert used


def test_names_of_parameters_are_those_of_a_sequence():
    assert list(network().state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_what_it_does_not_cover_it_names(monkeypatch):
    data = torch.randn(2, 4)
    assert covers(network(), data) == "needs a GPU, got cpu"
    monkeypatch.setattr(feedforward, "DEVICES", ("cpu",))
    monkeypatch.setattr(feedforward, "INSTALLED", False)
    assert covers(network(), data) == "needs Triton, which is not installed; pip install triton"
    monkeypatch.setattr(feedforward, "INSTALLED", True)
    assert covers(network(), data) is None
    with torch.no_grad():
        assert covers(network(), data) == "is for learning, and nothing here has a gradient"
    assert covers(network(nn.GELU()), data) == "needs Linear, ReLU and Linear, got Linear, GELU, Linear"
    assert covers(network(bias=False), data) == "needs a bias in the middle, and there is none"
    half = "needs data and matrices in one of float32, float16 and bfloat16, got bfloat16, float32"
    assert covers(network(), data.bfloat16()) == half
    with torch.autocast("cpu", torch.bfloat16):
        assert covers(network(), data) == "needs data and matrices in the precision of autocast"
        assert covers(network().bfloat16(), data.bfloat16()) is None
    monkeypatch.setattr(feedforward.capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
    assert covers(network(), data) == "lacks torch.float32"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert covers(network(), data) == "cannot be traced"


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
