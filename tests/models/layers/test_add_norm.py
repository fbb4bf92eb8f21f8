import os

import pytest
import torch
from torch import nn

from regard.models.layers import add_norm
from regard.models.layers.add_norm import covers, find_product_dtype, norm_arguments
from regard.models.layers.residual import Residual

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and add_norm.INSTALLED
runs = pytest.mark.skipif(not INTERPRETED, reason="runs in Triton's interpreter; benchmarks/parity.py checks on a GPU")


@pytest.fixture
def on_a_cpu(monkeypatch):
    """Switches the kernel on and off."""
    return lambda on: monkeypatch.setattr(add_norm, "DEVICES", ("cpu",) if on else ())


def around(kind, dropout=0.0, size=24):
    made, following = Residual(size, kind, dropout), Residual(size, kind).norm
    for each in (*made.parameters(), *following.parameters()):
        nn.init.normal_(each, 1.0, 0.3)
    return made, following


def passed(made, following, data, found, flows, half):
    """What comes out of leaving one sublayer and entering another, of entering alone, and every gradient."""
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        outputs = [*made.add_and_normalise(data, found, following), made.normalise_input(data)]
    total = sum((each * flow.to(each.dtype)).double().sum() for each, flow in zip(outputs, flows, strict=True))
    learned = [*made.norm.parameters(), *following.parameters()]
    gradients = torch.autograd.grad(total, [data, found, *learned], allow_unused=True)
    return [each.detach() for each in outputs], [each for each in gradients if each is not None]


@runs
@pytest.mark.parametrize("kind", ["pre", "post", "rms"])
def test_it_equals_sum_and_norm_and_so_does_every_gradient(on_a_cpu, kind):
    made, following = around(kind)
    data, found = (torch.randn(3, 5, 24, requires_grad=True) for _ in range(2))
    flows = [torch.randn(3, 5, 24) for _ in range(3)]
    on_a_cpu(False)
    expected = passed(made, following, data, found, flows, False)
    on_a_cpu(True)
    for mine, theirs in zip(passed(made, following, data, found, flows, False), expected, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@runs
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_under_autocast_what_enters_is_rounded_once_and_the_stream_keeps_its_precision(on_a_cpu, kind):
    made, following = around(kind)
    data, found = torch.randn(3, 5, 24, requires_grad=True), torch.randn(3, 5, 24, requires_grad=True)
    flows = [torch.randn(3, 5, 24) for _ in range(3)]
    on_a_cpu(False)
    exact = passed(made, following, data, found, flows, False)
    on_a_cpu(True)
    outputs, gradients = passed(made, following, data, found.bfloat16().detach().requires_grad_(), flows, True)
    assert [each.dtype for each in outputs][:2] == [torch.float32, torch.bfloat16]
    for one, other in zip([*outputs, *gradients], [*exact[0], *exact[1]], strict=True):
        torch.testing.assert_close(one.float(), other, rtol=0.03, atol=0.03)


@runs
def test_what_is_dropped_follows_the_seed_and_falls_on_what_was_found(on_a_cpu):
    on_a_cpu(True)
    made, following = around("pre", 0.5)
    data, found = torch.zeros(2, 9, 24, requires_grad=True), torch.ones(2, 9, 24, requires_grad=True)
    totals = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        totals.append(made.add_and_normalise(data, found, following)[0])
    assert set(totals[0].unique().tolist()) == {0.0, 2.0}
    assert torch.equal(totals[0], totals[1])
    assert not torch.equal(totals[0], totals[2])
    assert torch.equal(torch.autograd.grad(totals[2].sum(), found)[0], totals[2])
    made.eval()
    assert set(made.add_and_normalise(data, found, following)[0].unique().tolist()) == {1.0}


@runs
def test_a_stream_that_nobody_reads_needs_no_gradient(on_a_cpu):
    on_a_cpu(True)
    made, following = around("pre")
    data, found = (torch.randn(1, 2, 24, requires_grad=True) for _ in range(2))
    flow = torch.randn(1, 2, 24)
    gradient = torch.autograd.grad(made.add_and_normalise(data, found, following)[1], data, flow)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(following(data + found), data, flow)[0], rtol=1e-4, atol=1e-5)


def test_what_it_does_not_cover_it_names(monkeypatch):
    data, norm = torch.randn(2, 3, 4), nn.LayerNorm(4)
    assert covers(data, norm) == "needs a GPU, got cpu"
    monkeypatch.setattr(add_norm, "DEVICES", ("cpu",))
    monkeypatch.setattr(add_norm, "INSTALLED", False)
    assert covers(data, norm) == "needs Triton, which is not installed; pip install triton"
    monkeypatch.setattr(add_norm, "INSTALLED", True)
    assert covers(data, norm) is None
    with torch.no_grad():
        assert covers(data, norm) == "is for learning, and nothing here has a gradient"
    assert covers(data, nn.Identity()) == "needs a LayerNorm or RMSNorm of one axis with weights, got Identity"
    assert "with weights, got LayerNorm" in covers(data, nn.LayerNorm(4, elementwise_affine=False))
    assert "of one axis with weights, got LayerNorm" in covers(data, nn.LayerNorm((3, 4)))
    assert covers(data.double(), norm) == "needs float32, float16 or bfloat16, got float64"
    assert covers(torch.randn(1, 8193), norm) == "needs rows of 1 to 8192 numbers, got (1, 8193)"
    monkeypatch.setattr(add_norm.capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
    with torch.autocast("cpu", torch.bfloat16):
        assert covers(data, norm) == "lacks torch.bfloat16"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert covers(data, norm) == "cannot be traced"


def test_products_are_in_the_precision_of_autocast():
    data = torch.randn(2, 4)
    assert find_product_dtype(data) == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert find_product_dtype(data) == torch.bfloat16


def test_a_norm_is_known_by_its_weights_its_shifts_and_its_epsilon():
    plain, root = nn.LayerNorm(4), nn.RMSNorm(4)
    assert norm_arguments(plain) == (plain.weight, plain.bias, 1e-5, False)
    assert norm_arguments(root) == (root.weight, None, torch.finfo(torch.float32).eps, True)
