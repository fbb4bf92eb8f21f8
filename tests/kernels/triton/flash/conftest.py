"""Plans in which something is odd, and the weights that they mean by their formula, in double precision."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from regard.kernels.triton.flash.arguments import Plan

PLAIN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 0.7, 0.0, [16, 16, 4, 1])
KEEP = torch.arange(90)[None] < torch.tensor([[77], [0]])
PLANS = {
    "everywhere": PLAIN,
    "wide tiles": PLAIN._replace(tiles=[16, 64, 4, 1]),
    "causal, with queries before the keys": PLAIN._replace(causal=True, offset=-5, tiles=[16, 32, 4, 1]),
    "causal, with keys before the queries": PLAIN._replace(causal=True, offset=70, tiles=[32, 16, 4, 1]),
    "causal, each row at its place": PLAIN._replace(causal=True, offsets=torch.tensor([0, 66])),
    "padded": PLAIN._replace(keep=KEEP),
    "padded and causal": PLAIN._replace(keep=KEEP, causal=True, offset=30),
    "a window": PLAIN._replace(window=9, offset=60),
    "a mask that leaves some rows nothing": PLAIN._replace(mask=torch.arange(90)[None, None, None] % 40 < torch.arange(20)[:, None]),
    "a mask for each row": PLAIN._replace(mask=torch.arange(2 * 90).view(2, 1, 1, 90) % 3 > 0),
    "a bias": PLAIN._replace(bias=torch.linspace(-2, 2, 109).expand(1, 1, -1).contiguous()),
    "a negative scale": PLAIN._replace(scale=-0.7),
    "no scale at all": PLAIN._replace(scale=0.0),
}  # fmt: skip


def sides(plan: Plan, whole: bool) -> list[Tensor]:
    """20 queries and 90 keys: whole numbers, so that many scores are equal, or any; hidden keys are NaN."""
    draw = torch.Generator().manual_seed(0)
    data = [torch.randn(2, 1, length, 5, generator=draw) for length in (20, 90, 90)]
    if whole:
        data = [(2 * each).round() for each in data]
    if plan.keep is not None:
        for each in data[1:]:
            each.masked_fill_(~plan.keep[:, None, :, None], torch.nan)
    return data


def seen(plan: Plan) -> Tensor:
    first = torch.tensor([plan.offset] * 2) if plan.offsets is None else plan.offsets
    far = torch.arange(90) - torch.arange(20)[:, None] - first[:, None, None, None]
    allowed = torch.ones(2, 1, 20, 90, dtype=torch.bool)
    if plan.causal:
        allowed &= far <= 0
    if plan.window >= 0:
        allowed &= far.abs() <= plan.window
    if plan.keep is not None:
        allowed &= plan.keep[:, None, None]
    return allowed if plan.mask is None else allowed & plan.mask


def weights(plan: Plan, data: list[Tensor]) -> Tensor:
    """Zeros where a query sees nothing."""
    query, keys = (each.double().nan_to_num() for each in data[:2])
    scores = plan.scale * query @ keys.mT
    if plan.bias is not None:
        scores += plan.bias[0, 0].double()[torch.arange(90) - torch.arange(20)[:, None] + 19]
    return torch.softmax(scores.masked_fill(~seen(plan), -torch.inf), -1).nan_to_num()


def best(true: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """The largest weights and their keys, of equals the first: sums of other orders may differ in their last digits."""
    order = torch.sort(true.log().mul(1e6).round(), dim=-1, descending=True, stable=True).indices[..., :top]
    return true.gather(-1, order), order


@pytest.fixture(params=PLANS.values(), ids=PLANS)
def plan(request) -> Plan:
    return request.param


@pytest.fixture(params=[True, False], ids=["whole numbers", "any numbers"])
def whole(request) -> bool:
    return request.param


@pytest.fixture
def formula() -> SimpleNamespace:
    return SimpleNamespace(plain=PLAIN, sides=sides, seen=seen, weights=weights, best=best)
