import os

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.flash_triton import launch
from regard.kernels.flash_triton.launch import Asked, Found, Plan

QUICK = Asked(peak=True, entropy=True, moments=1)
PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 0.7, 0.0, [16, 16, 4, 1])
KEEP = torch.arange(90)[None] < torch.tensor([[77], [0]])
PLANS = {
    "everywhere": PLAN,
    "wide tiles": PLAN._replace(tiles=[16, 64, 4, 1]),
    "causal, with queries before the keys": PLAN._replace(causal=True, offset=-5, tiles=[16, 32, 4, 1]),
    "padded": PLAN._replace(keep=KEEP),
    "a window": PLAN._replace(window=9, offset=60),
    "a mask that leaves some rows nothing": PLAN._replace(mask=torch.arange(90)[None, None, None] % 40 < torch.arange(20)[:, None]),
    "a bias": PLAN._replace(bias=torch.linspace(-2, 2, 109).expand(1, 1, -1).contiguous()),
    "a negative scale": PLAN._replace(scale=-0.7),
    "no scale at all": PLAN._replace(scale=0.0),
}  # fmt: skip


def sides(plan: Plan, whole: bool) -> list[Tensor]:
    """Whole numbers, so that many scores are equal, or any; hidden keys are NaN."""
    draw = torch.Generator().manual_seed(0)
    data = [torch.randn(2, 1, length, 5, generator=draw) for length in (20, 90, 90)]
    if whole:
        data = [(2 * each).round() for each in data]
    if plan.keep is not None:
        for each in data[1:]:
            each.masked_fill_(~plan.keep[:, None, :, None], torch.nan)
    return data


def seen(plan: Plan) -> Tensor:
    far = torch.arange(90) - torch.arange(20)[:, None] - plan.offset
    allowed = torch.ones(2, 1, 20, 90, dtype=torch.bool)
    if plan.causal:
        allowed &= far <= 0
    if plan.window >= 0:
        allowed &= far.abs() <= plan.window
    if plan.keep is not None:
        allowed &= plan.keep[:, None, None]
    return allowed if plan.mask is None else allowed & plan.mask


def truth(plan: Plan, data: list[Tensor]) -> Tensor:
    """The weights by their formula, in double precision; zeros where a query sees nothing."""
    query, keys = (each.double().nan_to_num() for each in data[:2])
    scores = plan.scale * query @ keys.mT
    if plan.bias is not None:
        scores += plan.bias[0, 0].double()[torch.arange(90) - torch.arange(20)[:, None] + 19]
    return torch.softmax(scores.masked_fill(~seen(plan), -torch.inf), -1).nan_to_num()


def first_of_the_largest(weights: Tensor) -> Tensor:
    """Sums of other orders may differ in their last digits."""
    return (weights >= (1 - 1e-9) * weights.amax(-1, keepdim=True)).int().argmax(-1)


def same(found: Found, weights: Tensor, asked: Asked) -> None:
    place = torch.arange(90)
    mean = weights @ place.double()
    entropy = torch.special.entr(weights).sum(-1)
    expected = entropy, weights.amax(-1), mean
    for row, wanted in enumerate((asked.entropy, asked.peak, asked.moments)):
        if wanted:
            torch.testing.assert_close(found.measured[row].double(), expected[row], rtol=1e-5, atol=4e-5)
    if asked.peak:
        assert torch.equal(found.argmax, first_of_the_largest(weights))


@pytest.mark.parametrize("whole", [True, False], ids=["whole numbers", "any numbers"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_sums_by_threads_are_what_the_formula_says(plan, whole):
    data = sides(plan, whole)
    found, weights = launch.forward(*data, plan, QUICK), truth(plan, data)
    torch.testing.assert_close(found.context.double(), weights @ data[2].double().nan_to_num(), rtol=1e-5, atol=1e-5)
    same(found, weights, QUICK)


@pytest.mark.parametrize("asked", [Asked(peak=True), Asked(entropy=True), Asked(moments=1)], ids=["peak", "entropy", "mean"])
def test_each_can_be_asked_for_alone(asked):
    data = sides(PLAN, whole=True)
    same(launch.forward(*data, PLAN, asked), truth(PLAN, data), asked)


@pytest.mark.parametrize("place", [*range(0, 64, 3), 63, 64, 100, 127])
def test_the_first_of_two_equal_keys_is_the_best_wherever_they_stand(place):
    keys = torch.zeros(1, 1, 128, 1)
    keys[..., place, 0] = keys[..., min(place + 9, 127), 0] = keys[..., 127, 0] = 1
    plan = PLAN._replace(tiles=[16, 64, 4, 1])
    assert launch.forward(torch.ones(1, 1, 1, 1), keys, keys, plan, QUICK).argmax.item() == place


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_what_keys_receive_is_what_the_formula_says(plan):
    data = sides(plan, whole=False)
    found = launch.forward(*data, plan, Asked(received=True, uniform=True))
    torch.testing.assert_close(found.received.double(), truth(plan, data).sum(2), rtol=1e-5, atol=1e-5)
    even = seen(plan) / seen(plan).sum(-1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(found.uniform, even.sum(2), rtol=1e-5, atol=1e-5)


def test_narrow_heads_of_half_precision_have_fewer_registers_and_stages():
    def told(size: int, dtype: torch.dtype, asked: Asked = QUICK) -> tuple:
        data = torch.empty(1, 1, 1, size, dtype=dtype)
        tiles = [64, 64, 4, 3]
        return launch._registers(data, data, asked, tiles), launch._staged(data, data, asked, tiles)[3]

    assert told(64, torch.bfloat16) == ({"maxnreg": 128}, 2)
    assert told(65, torch.bfloat16) == told(64, torch.float32) == told(64, torch.bfloat16, Asked()) == ({}, 3)
