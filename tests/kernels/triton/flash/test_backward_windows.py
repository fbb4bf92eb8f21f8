import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash.arguments import Plan, StatisticsRequest
from regard.kernels.triton.flash.launch_window_sort import compute_bin_width, sort_queries
from regard.kernels.triton.flash.operator import attend

QUERIES, KEYS, WIDTH = 70, 50, 6
PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, float(WIDTH), 0.7, 0.0, [16, 16, 4, 1])
FAR = torch.arange(KEYS) - torch.arange(QUERIES)[:, None]
KEEP = torch.arange(KEYS)[None] < torch.tensor([[KEYS], [31]])
MASK = torch.arange(2 * QUERIES * KEYS).view(2, 1, QUERIES, KEYS) % 3 > 0
SCOPES = {
    "windows alone": ({}, FAR == FAR),
    "causal": ({"causal": True, "offset": 7}, FAR <= 7),
    "a fixed window too": ({"window": 20}, FAR.abs() <= 20),
    "some keys": ({"keep": KEEP}, KEEP[:, None, None]),
    "a mask": ({"mask": MASK}, MASK),
}


def dense(query, keys, values, centres, allowed, bell, kept):
    """The formula over all keys, in double precision."""
    query, keys, values, centres = (each.double() for each in (query, keys, values, centres))
    heads = query.shape[1] // keys.shape[1]
    keys, values = (each.repeat_interleave(heads, 1) for each in (keys, values))
    away = (torch.arange(KEYS) - centres[..., None])[:, None]
    seen = (away.abs() <= WIDTH) & allowed
    fall = -2 * (away / WIDTH).square()
    scores = (0.7 * query @ keys.mT + (fall if bell == 2 else 0)).masked_fill(~seen, -1e9)
    weights = torch.softmax(scores, -1) * seen
    return (weights * (fall.exp() if bell == 1 else 1) * kept) @ values


def leaves(heads=1):
    draw = torch.Generator().manual_seed(3)
    shapes = (2, heads, QUERIES, 5), (2, 1, KEYS, 5), (2, 1, KEYS, 3)
    made = [torch.randn(shape, generator=draw) for shape in shapes]
    return [each.requires_grad_() for each in (*made, 60 * torch.rand(2, QUERIES, generator=draw) - 5)]


def placed(plan, centres):
    return plan._replace(centres=centres, bin_width=compute_bin_width(KEYS), **sort_queries(centres, KEYS)._asdict())


def compare(found, exact, given):
    flow = torch.arange(found.numel()).view(found.shape).cos()
    ours, plain = (torch.autograd.grad(each, given, flow.to(each.dtype)) for each in (found, exact))
    for mine, theirs in zip((found, *ours), (exact, *plain), strict=True):
        torch.testing.assert_close(mine, theirs.to(mine.dtype), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bell", [1, 2])
@pytest.mark.parametrize(("told", "allowed"), SCOPES.values(), ids=SCOPES)
def test_every_gradient_is_that_of_the_formula_whatever_else_hides_keys(told, allowed, bell):
    given = leaves()
    plan = placed(PLAN._replace(gaussian=bell, **told), given[3])
    compare(attend(*given[:3], plan, StatisticsRequest()).context, dense(*given, allowed, bell, 1.0), given)


def test_heads_that_share_keys_are_summed():
    given = leaves(heads=3)
    plan = placed(PLAN._replace(gaussian=1), given[3])
    compare(attend(*given[:3], plan, StatisticsRequest()).context, dense(*given, FAR == FAR, 1, 1.0), given)


def test_what_was_dropped_on_the_way_there_is_dropped_on_the_way_back():
    given = leaves()
    plan = placed(PLAN._replace(gaussian=1, dropout=0.4, seed=torch.tensor([5])), given[3])
    read = attend(
        *given[:2], torch.eye(KEYS).expand(2, 1, KEYS, KEYS), plan, StatisticsRequest()
    ).context  # the weights themselves
    kept = torch.where(read != 0, 1 / 0.6, 0.0).detach()
    assert 0.5 < (read != 0).sum() / (dense(*given[:2], torch.eye(KEYS), given[3], FAR == FAR, 1, 1.0) != 0).sum() < 0.7
    compare(attend(*given[:3], plan, StatisticsRequest()).context, dense(*given, FAR == FAR, 1, kept), given)
