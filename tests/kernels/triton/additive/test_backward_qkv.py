from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import gradients as sums
from regard.kernels.triton.additive import operator, plan
from regard.kernels.triton.additive.arguments import MaskArguments

EVERYWHERE = MaskArguments()


def formula(query, key, value, v, scoped):
    scores = (torch.tanh(query[:, :, :, None] + key[:, :, None]) @ v[:, None, :, None])[..., 0]
    at, keys = torch.arange(query.shape[2])[:, None], torch.arange(key.shape[2])
    seen = (keys <= at + scoped.ahead).expand(query.shape[0], 1, -1, -1)
    seen = seen if scoped.keep is None else seen & scoped.keep[:, None, None]
    return torch.softmax(scores.masked_fill(~seen, -3e4), dim=-1) * seen.any(-1, keepdim=True) @ value


def inputs(queries, keys, hidden, dtype=torch.float32, large=1.0):
    torch.manual_seed(0)
    sides = [large * torch.randn(2, 2, queries, hidden), large * torch.randn(2, 1, keys, hidden)]
    return [each.to(dtype) for each in (*sides, torch.randn(2, 1, keys, 5), torch.randn(2, hidden))]


def gradients(run, given, flow, dtype):
    leaves = [each.to(dtype).requires_grad_() for each in given]
    return torch.autograd.grad(run(*leaves), leaves, flow.to(dtype))


def noted(monkeypatch):
    """How the pass was dealt, each time that it ran."""
    found, run = [], sums.write_gradients
    monkeypatch.setattr(sums, "write_gradients", lambda *told: found.append(told[4]) or run(*told))
    return found


CASES = {
    "odd": ((5, 7, 3), EVERYWHERE, {}, 1.0),
    "units": ((3, 7, 40), EVERYWHERE, {"both_warps": 1}, 1.0),  # more than a program has
    "one": ((33, 7, 3), EVERYWHERE, {}, 1.0),  # query more than two blocks have
    "beyond": ((3, 40, 3), EVERYWHERE, {"both_parts": 2}, 1.0),  # lanes that share a unit, and places behind the last key
    "parts": ((3, 40, 3), EVERYWHERE, {}, 1.0),  # of what queries get, from three tiles of keys
    "shared": ((20, 7, 3), EVERYWHERE, {}, 1.0),  # queries of a head, among two programs
    "chunks": ((20, 7, 3), EVERYWHERE, {"room": 1 << 10}, 1.0),  # of queries, which add to the keys
    "kept": ((5, 7, 3), EVERYWHERE, {"saved_scores": 99.0}, 1.0),
    "padded": ((5, 20, 3), MaskArguments(torch.arange(20) < torch.tensor([[18], [0]])), {}, 1.0),
    "blind": ((19, 20, 3), MaskArguments(ahead=-17), {}, 1.0),  # the first queries see nothing, and the last two a few keys
    "far": ((5, 7, 3), EVERYWHERE, {}, 15.0),  # numbers whose exponentials are not taken apart
    "faint": ((5, 7, 3), EVERYWHERE, {}, 0.01),  # numbers whose tanh is next to nothing beside 1
    "faintest": ((5, 7, 3), EVERYWHERE, {}, 1e-6),
}
SHARED = {"parts": (3, 1), "shared": (1, 2)}
"""Tiles of keys, and programs among which queries are dealt, where they are more than one."""


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, torch.float32) for name in CASES]
    + [(name, torch.bfloat16) for name in ("odd", "kept", "faintest")]
    + [("odd", torch.float16)],
)
def test_one_pass_finds_every_gradient(monkeypatch, name, dtype):
    """No further from double precision than three times plain PyTorch, and a unit in the last place."""
    shape, scoped, changed, large = CASES[name]
    given = inputs(*shape, dtype, large)
    flow, dealt = torch.randn(2, 2, shape[0], 5).to(dtype), noted(monkeypatch)
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, **{"both": 8 * (4 // dtype.itemsize), **changed}))
    monkeypatch.setattr(plan, "count_multiprocessors", lambda device: 32 if name == "shared" else 1)
    found = gradients(lambda *leaves: operator.attention(*leaves, scoped)[0], given, flow, dtype)
    assert {(each.tiles, each.shared) for each in dealt} == {SHARED.get(name, (1, 1))}
    right, plain = (gradients(lambda *a: formula(*a, scoped), given, flow, each) for each in (torch.float64, dtype))
    for mine, theirs, exact in zip(found, plain, right, strict=True):
        assert (mine - exact).norm() <= 3 * (theirs - exact).norm() + torch.finfo(dtype).eps * exact.norm()


def test_what_nobody_may_see_may_be_no_number(monkeypatch):
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, both=8, both_rows=16))
    query, key, value, v = inputs(3, 20, 3)
    keep = torch.arange(20).expand(2, 20) < 17
    key[:, :, 17:], value[:, :, 17:] = float("nan"), float("nan")
    flow = torch.randn(2, 2, 3, 5)
    found = gradients(
        lambda *leaves: operator.attention(*leaves, MaskArguments(keep))[0], (query, key, value, v), flow, torch.float32
    )
    short = gradients(
        lambda *leaves: operator.attention(*leaves)[0], (query, key[:, :, :17], value[:, :, :17], v), flow, torch.float32
    )
    for mine, right in zip(found, short, strict=True):
        held = mine[:, :, : right.shape[2]] if mine.dim() == 4 else mine
        torch.testing.assert_close(held, right, rtol=1e-4, atol=1e-6)
    assert not found[1][:, :, 17:].any()
    assert not found[2][:, :, 17:].any()
