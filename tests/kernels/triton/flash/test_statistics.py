import os

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import arguments, launch
from regard.kernels.triton.flash.launch import ForwardOutput, StatisticsRequest

QUICK = StatisticsRequest(peak=True, entropy=True, moments=1)


@pytest.fixture(params=["tf32", "ieee"], ids=["four hands", "one"], autouse=True)
def hands(request, monkeypatch):
    """As where tensor cores multiply, and where they do not: the interpreter multiplies alike."""
    monkeypatch.setattr(arguments, "select_dot_precision", lambda dtype: request.param)


def same(found: ForwardOutput, weights: Tensor, asked: StatisticsRequest) -> None:
    place = torch.arange(90).double()
    mean = weights @ place
    spread = (weights * (place - mean[..., None]) ** 2).sum(-1).sqrt()
    expected = torch.special.entr(weights).sum(-1), weights.amax(-1), mean, spread
    for row, wanted in enumerate((asked.entropy, asked.peak, asked.moments, asked.moments == 2)):
        if wanted:
            torch.testing.assert_close(found.measured[row].double(), expected[row], rtol=1e-5, atol=4e-5)


@pytest.mark.parametrize("moments", [1, 2], ids=["mean", "spread"])
def test_sums_by_threads_are_what_the_formula_says(plan, whole, moments, formula):
    data, asked = formula.sides(plan, whole), QUICK._replace(moments=moments)
    found, weights = launch.forward(*data, plan, asked), formula.weights(plan, data)
    torch.testing.assert_close(found.context.double(), weights @ data[2].double().nan_to_num(), rtol=1e-5, atol=1e-5)
    same(found, weights, asked)
    seen = weights.amax(-1) > 0
    assert torch.equal(found.argmax[seen], formula.best(weights, 1)[1][..., 0][seen])


@pytest.mark.parametrize(
    "asked",
    [
        StatisticsRequest(peak=True),
        StatisticsRequest(entropy=True),
        StatisticsRequest(moments=1),
        StatisticsRequest(moments=2),
    ],
    ids=str,
)
def test_each_can_be_asked_for_alone(asked, formula):
    data = formula.sides(formula.plain, whole=True)
    same(launch.forward(*data, formula.plain, asked), formula.weights(formula.plain, data), asked)


@pytest.mark.parametrize("place", [*range(0, 64, 3), 63, 64, 100, 127])
def test_the_first_of_two_equal_keys_is_the_best_wherever_they_stand(place, formula):
    keys = torch.zeros(1, 1, 128, 1)
    keys[..., place, 0] = keys[..., min(place + 9, 127), 0] = keys[..., 127, 0] = 1
    plan = formula.plain._replace(tiles=[16, 64, 4, 1])
    assert launch.forward(torch.ones(1, 1, 1, 1), keys, keys, plan, QUICK).argmax.item() == place


@pytest.mark.parametrize("place", [5, 66, 2003])
def test_a_weight_that_is_almost_all_leaves_an_exact_spread(place, formula):
    """Of 1 - p and p at two keys side by side the spread is sqrt(p (1 - p)), wherever they stand."""
    keys = torch.full((1, 1, 2100, 1), -1e4)
    keys[..., place, 0], keys[..., place + 1, 0] = 10.0, 0.0
    plan = formula.plain._replace(tiles=[16, 64, 4, 1], scale=1.0)
    found = launch.forward(torch.ones(1, 1, 1, 1), keys, keys, plan, StatisticsRequest(moments=2)).measured.flatten()
    share = torch.sigmoid(torch.tensor(-10.0, dtype=torch.float64)).item()
    assert found[2].item() == pytest.approx(place + share, rel=1e-7)
    assert found[3].item() == pytest.approx((share * (1 - share)) ** 0.5, rel=1e-5)


def test_narrow_heads_of_half_precision_have_fewer_registers(formula):
    def told(size: int, dtype: torch.dtype, asked: StatisticsRequest = QUICK) -> tuple:
        data = torch.empty(1, 1, 1, size, dtype=dtype)
        return launch._select_config(data, data, formula.plain._replace(tiles=[64, 128, 4, 3]), asked)

    assert told(64, torch.bfloat16) == ([64, 64, 4, 3], {"maxnreg": 128})
    assert told(65, torch.bfloat16) == told(64, torch.float32) == ([64, 64, 4, 3], {})
    assert told(64, torch.bfloat16, StatisticsRequest(received=True, uniform=True)) == ([64, 128, 4, 3], {})


def test_registers_are_counted_where_the_compiler_knows_the_word(formula, monkeypatch):
    data = torch.empty(1, 1, 1, 64, dtype=torch.bfloat16)
    monkeypatch.setattr(torch.version, "hip", "6.2")
    assert launch._select_config(data, data, formula.plain, QUICK)[1] == {}
