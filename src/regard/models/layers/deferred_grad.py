"""Cross-attention in a loop whose gradient by the memory is taken once for all steps."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.types import Attended, Memory, State
from regard.models.layers.beam_attention import attend_beams, is_stateless


class ContextGradients(torch.autograd.Function):
    """Autograd function that adds zeros to the contexts of a loop to collect their gradients.

    c_t = attend(q_t, M) has dM = Σ_t of T small gradients, each as large as M. Here the loop reads M without a gradient, and
    when all dc_t are known the attention is computed once more for all T queries, for the gradient of M alone.
    """

    @staticmethod
    def forward(ctx: Any, call: "SavedCall", time: int, keys: Tensor, values: Tensor) -> Tensor:
        ctx.call = call
        ctx.save_for_backward(keys, values)
        return values.new_zeros(time, len(values), call.cross.size)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_contexts: Tensor) -> tuple[Tensor | None, ...]:
        call = ctx.call
        cross, mode = call.cross, call.cross.training
        cross.train(call.training)  # the mode of the forward pass, whatever has been done to the model since
        with torch.enable_grad(), torch.autocast(d_contexts.device.type, call.half, enabled=call.half is not None):
            keys, values = (saved_tensor.detach().requires_grad_() for saved_tensor in ctx.saved_tensors)
            memory = Memory(keys, values, call.keep)
            context = cross(torch.cat(call.queries, dim=1), memory, offset=call.position).context
        cross.train(mode)
        d_contexts = d_contexts[: len(call.queries)].transpose(0, 1).to(context.dtype)
        gradients = torch.autograd.grad(context, (keys, values), d_contexts, allow_unused=True)
        return None, None, *gradients


class SavedCall(NamedTuple):
    """Saved call of an attention, enough to recompute it in backward. It holds no reference to the loop, which holds it: a
    cycle of graph and loop is only freed by Python's garbage collector."""

    cross: Attention
    keep: Tensor | None
    position: Tensor
    training: bool
    half: torch.dtype | None
    """Dtype of autocast, if the loop ran under one."""
    queries: list[Tensor]


class DeferredAttention:
    """Cross-attention calls of a loop on one memory, one per step and in order."""

    def __init__(
        self, cross: Attention, memory: Memory, state: State, time: int, position: Int[Tensor, " rows"], weights: bool
    ):
        self.cross, self.memory, self.state, self.time = cross, memory, state, time
        self.position, self.weights = position, weights
        self.queries: list[Tensor] = []
        self.steps: list[Attended] = []
        self.gradients: tuple[Tensor, ...] = ()
        """Zeros that collect the gradient of each step's context, where that of the memory is deferred."""
        if self.defers(len(position)):
            kind = memory.values.device.type
            half = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
            call = SavedCall(cross, memory.keep, position, cross.training, half, self.queries)
            self.gradients = ContextGradients.apply(call, time, memory.keys, memory.values).unbind(0)  # type: ignore[no-untyped-call]
            self.memory = Memory(memory.keys.detach(), memory.values.detach(), memory.keep)

    def defers(self, rows: int) -> bool:
        """Return True if the gradient can be deferred: the context follows from query and memory, and only it is used."""
        memory, cross = self.memory, self.cross
        random = cross.training and (cross.dropout > 0 or getattr(cross.normalise, "random", False))
        needed = memory.keys.requires_grad or memory.values.requires_grad
        plain = is_stateless(self.state) and not self.weights and not random and rows == len(memory.values)
        return plain and needed and self.time > 1 and torch.is_grad_enabled() and not torch.compiler.is_compiling()

    def __call__(self, step: int, query: Float[Tensor, "rows size"]) -> Float[Tensor, "rows context"]:
        """Context of the query of one step."""
        if self.gradients:  # a row for each source, and an attention without state
            self.queries.append(query.detach()[:, None])
            offset = self.position + step if self.cross.positional else 0
            attended = self.cross(query[:, None], self.memory, offset=offset)
            attended = attended._replace(context=attended.context + self.gradients[step][:, None])
        else:
            options: dict[str, Any] = {"position": self.position + step, "weights": self.weights}
            attended = attend_beams(self.cross, query[:, None], self.memory, self.state, **options)
            self.state = attended.state
        self.steps.append(attended)
        return attended.context[:, 0]
