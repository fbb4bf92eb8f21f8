"""Whether the kernels of a Transformer's training are as near to double precision as plain PyTorch is, on this GPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

import _bare  # noqa: F401
from regard.attention.attend import compose
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.kernels import brief
from regard.training import projected


@contextmanager
def without(*modules: Any) -> Iterator[None]:
    """As if a kernel covered no device."""
    before = [module.DEVICES for module in modules]
    for module in modules:
        module.DEVICES = ()
    try:
        yield
    finally:
        for module, devices in zip(modules, before, strict=True):
            module.DEVICES = devices


def attends() -> bool:
    """Attention between short sequences: context, the three gradients, and equal repeats."""
    fine = True
    for length, size, dtype in (
        (32, 64, torch.bfloat16),
        (50, 40, torch.float16),
        (33, 128, torch.float32),
        (1, 8, torch.float32),
    ):
        keep = torch.rand(8, length, device="cuda") < 0.7
        keep[0] = False
        sides = [torch.randn(8, 4, length, size, device="cuda", dtype=dtype) for _ in range(4)]
        asked = Request(*sides[:3], ScaledDot(), Softmax(), Causal() & Padding(keep), 0.0, 0, False, ())
        wide = asked._replace(query=asked.query.double(), keys=asked.keys.double(), values=asked.values.double())
        exact = gradients(compose, wide, sides[3].double())
        mine, again, plain = (gradients(run, asked, sides[3]) for run in (brief.run, brief.run, compose))
        for place, (one, other, theirs, right) in enumerate(zip(mine, again, plain, exact, strict=True)):
            error, usual = ((each.double() - right).abs().max().item() for each in (one, theirs))
            within = error <= (3 if place else 2) * usual + 4 * torch.finfo(torch.float32).eps * (
                1 + right.abs().max().item()
            )
            fine &= within and torch.equal(one, other)
            if not within or not torch.equal(one, other):
                print(
                    f"parity brief {length} {size} {dtype} number {place}: {error:.2e} beside {usual:.2e} TOO FAR or unequal"
                )
    return fine


def gradients(run: Callable[[Request], Any], asked: Request, flow: Tensor) -> list[Tensor]:
    leaves = [each.detach().requires_grad_() for each in asked[:3]]
    context = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2])).context
    return [context.detach(), *torch.autograd.grad(context, leaves, flow)]


def judges() -> bool:
    """The cost of a projection by one kernel, beside that in steps: total and the three gradients."""
    fine = True
    hidden, weight = torch.randn(5000, 64, device="cuda"), torch.randn(16001, 64, device="cuda") / 8
    bias, wanted = torch.randn(16001, device="cuda"), torch.randint(16001, (5000,), device="cuda")
    kept = torch.rand(5000, device="cuda") < 0.9

    def once(*given: Tensor) -> list[Tensor]:
        leaves = [each.detach().requires_grad_() for each in given]
        total = projected.projected(*leaves, wanted, 0.1, 0.05, kept).total
        return [total.detach(), *torch.autograd.grad(total, leaves)]

    exact = once(hidden.double(), weight.double(), bias.double())
    for half in (False, True):
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            mine = once(hidden, weight, bias)
            with without(projected):
                steps = once(hidden, weight, bias)
        for place, (one, other, right) in enumerate(zip(mine, steps, exact, strict=True)):
            error, usual = ((each.double() - right).abs().max().item() for each in (one, other))
            within = error <= (3 if place else 2) * usual + 1e-5 * right.abs().max().item()
            fine &= within
            if not within:
                print(f"parity cost, half {half}, number {place}: {error:.2e} beside {usual:.2e} TOO FAR")
    return fine
