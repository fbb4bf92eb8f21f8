"""Luong's decoder over all steps as one GPU operation: five kernel launches a step forward, and five backward.

Step by step through autograd a GPU waits for the host, and even a replayed CUDA graph is limited by the number of launches.
Here a step is two matrix products and three kernels (kernels/triton/lstm_decoder), and what the recurrence does not need
waits for the end of the loop: the gradients of weights, keys and values are one matrix product each over all steps.
"""

import importlib.util
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.mechanisms.luong import Luong
from regard.attention.module import Attention
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory
from regard.kernels.runtime import capability

INSTALLED = importlib.util.find_spec("triton") is not None
DEVICES = ("cuda",)
"""Device types that Triton compiles for; tests add the CPU, on which its interpreter runs."""
SCORES = (Dot, ScaledDot, Bilinear)
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_KEYS = 1024
"""Maximum source length whose weights one program can hold."""


def covers(
    layers: nn.ModuleList, cross: Attention, known: Float[Tensor, "rows time _"], memory: Memory, weights: bool
) -> str | None:
    """Reason why `loop` cannot replace single steps here, or None."""
    if known.device.type not in DEVICES:
        return f"needs a GPU, got {known.device.type}"
    if not INSTALLED:
        return "needs Triton, which is not installed; pip install triton"
    if len(layers) != 1 or not isinstance(layers[0], nn.LSTM):
        return f"needs one layer of LSTM, got {len(layers)} of {type(layers[0]).__name__}"
    if weights:
        return "returns no weights, and they are requested"
    if known.dtype not in DTYPES:
        return f"needs float32, float16 or bfloat16, got {str(known.dtype).removeprefix('torch.')}"
    if known.shape[1] < 2 or known.shape[0] != len(memory.values):
        return "is for whole targets, one for each source"
    if memory.keys.shape[2] > MAX_KEYS:
        return f"needs at most {MAX_KEYS} keys, got {memory.keys.shape[2]}"
    if torch.compiler.is_compiling():
        return "cannot be traced"
    return _covers_attention(cross) or capability.find_obstacle(known.device, find_product_dtype(known))


def _covers_attention(cross: Attention) -> str | None:
    if type(cross) not in (Attention, Luong) or getattr(cross, "centre", None) is not None:
        return f"needs an attention of stages alone, got {type(cross).__name__}"
    if type(cross.score) not in SCORES:
        return f"needs one of {', '.join(score.__name__ for score in SCORES)}, got {type(cross.score).__name__}"
    if type(cross.normalise) is not Softmax or type(cross.scope) is not Everywhere:
        return f"needs Softmax and Everywhere, got {type(cross.normalise).__name__} and {type(cross.scope).__name__}"
    if not isinstance(cross.query, nn.Identity):
        return "needs a query as it is, and this one is projected"
    if cross.training and cross.dropout:
        return "never drops weights, and some are to be dropped"
    if cross.impl not in ("auto", "fused"):
        return "is for attentions whose impl is auto or fused"
    return None


class LoopOutput(NamedTuple):
    """Outputs of all steps, time first."""

    top: Float[Tensor, "time rows size"]
    context: Float[Tensor, "time rows context"]
    read: Float[Tensor, "time rows fed"]
    cell: Float[Tensor, "rows size"]
    """Cell state of the LSTM after the last step."""


def run_loop(
    layer: nn.Module,
    readout: nn.Linear,
    cross: Attention,
    known: Float[Tensor, "rows time _"],
    memory: Memory,
    fed: Float[Tensor, "rows fed"],
    hidden: Float[Tensor, "rows size"],
    cell: Float[Tensor, "rows size"],
) -> LoopOutput:
    """Run all steps of Luong's decoder from its initial state.

        h_t = cell([y_t; r_{t-1}], h_{t-1}),  c_t = attend(h_t),  r_t = tanh(W [h_t; c_t] + b)

    Luong, Pham and Manning 2015, eq. 5 and section 3.3, https://arxiv.org/abs/1508.04025
    Under autocast matrix products are in its dtype; the cell state is in float32.
    """
    half, width = find_product_dtype(known), known.shape[2]
    W, U, bias, other = (layer.get_parameter(f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    projected = F.linear(known.transpose(0, 1), W[:, :width], bias + other).to(half)
    size = hidden.shape[1]
    scale = cross.score.factor(hidden[:, None, None]) if isinstance(cross.score, ScaledDot) else 1.0
    sides = (tensor[:, 0].to(half).contiguous() for tensor in (memory.keys, memory.values))
    inputs, outputs, last = FusedLoop.apply(  # type: ignore[no-untyped-call]
        projected.contiguous(),
        torch.cat((W[:, width:], U), dim=1).to(half),
        readout.weight.to(half),
        readout.bias,
        *sides,
        torch.cat((fed, hidden), dim=1).to(half),
        cell.float(),
        memory.keep,
        scale,
    )
    return LoopOutput(outputs[:, :, :size], outputs[:, :, size:], inputs[1:, :, :-size], last)


def find_product_dtype(known: Float[Tensor, "rows time _"]) -> torch.dtype:
    """Dtype of matrix products, that of autocast where it is on."""
    kind = known.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else known.dtype


class FusedLoop(torch.autograd.Function):
    """Autograd function of all steps: [r_t; h_t] from the initial state on, [h_t; c_t] of each step, and the last cell."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        weight: Tensor,
        readout: Tensor,
        bias: Tensor,
        keys: Tensor,
        values: Tensor,
        first: Tensor,
        cell: Tensor,
        keep: Tensor | None,
        scale: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from regard.kernels.triton.lstm_decoder.steps import run_forward

        saved = run_forward(projected, weight, readout, bias, keys, values, first, cell, keep, scale)
        ctx.save_for_backward(*saved, weight, readout, keys, values, keep)
        ctx.scale, ctx.kinds = scale, (bias.dtype, cell.dtype)
        return saved.inputs, saved.outputs, saved.cells[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_inputs: Tensor, d_outputs: Tensor, d_cell: Tensor) -> tuple[Tensor | None, ...]:
        from regard.kernels.triton.lstm_decoder.steps import SavedTensors, run_backward, without_autocast

        inputs, outputs, cells, gates, shares, weight, readout, keys, values, keep = ctx.saved_tensors
        saved = SavedTensors(inputs, outputs, cells, gates, shares)
        gradients = d_inputs.contiguous(), d_outputs.contiguous(), d_cell.clone()
        d = run_backward(saved, weight, readout, keys, values, keep, ctx.scale, *gradients)
        states = outputs[:, :, : cells.shape[2]]
        with without_autocast(inputs.device):
            return (
                d.gates,
                d.gates.flatten(0, 1).mT @ inputs[:-1].flatten(0, 1),
                d.sums.flatten(0, 1).mT @ outputs.flatten(0, 1),
                d.sums.sum((0, 1), dtype=ctx.kinds[0]),
                d.scores.permute(1, 2, 0) @ states.transpose(0, 1),
                shares.permute(1, 2, 0).to(values.dtype) @ d.contexts.transpose(0, 1),
                d.first,
                d.cell,
                None,
                None,
            )
