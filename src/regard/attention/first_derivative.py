"""Refusal of second derivatives, by functions whose gradient autograd cannot differentiate again."""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Data = Float[Tensor, "*shape"]


def refuse_second_derivative(data: Data, name: str) -> Data:
    """Mark an intermediate result of the function `name`: to differentiate its gradient again raises an error.

    A root that is solved for without a gradient, and then corrected by a Newton step under autograd, has the right first
    derivative and a wrong second one. A compiled graph has no second derivative at all.
    """
    if data.requires_grad and not torch.compiler.is_compiling():
        data.register_hook(partial(_mark_gradient, name))  # type: ignore[no-untyped-call]
    return data


def _mark_gradient(name: str, gradient: Tensor | None) -> Tensor | None:
    """The gradient where it has a derivative itself (create_graph=True), as an output of `FirstDerivative`."""
    if gradient is None or not gradient.requires_grad:
        return None
    marked: Tensor = FirstDerivative.apply(gradient, name)  # type: ignore[no-untyped-call]
    return marked


class FirstDerivative(torch.autograd.Function):
    """Identity that cannot be differentiated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, name: str) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, str], output: Tensor) -> None:
        ctx.name = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        raise RuntimeError(
            f"{ctx.name} has no second derivative: its gradient cannot be differentiated again; use Softmax or Sparsemax"
        )
