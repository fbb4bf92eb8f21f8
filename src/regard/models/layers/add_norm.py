"""Fused residual connection: dropout, sum and norm in one kernel for training on a GPU (Residual).

Dropout, sum, norm and the cast for the next matrix product are each a pass over the activations and, in backward, several;
together they take longer than the products between them. Here they are one pass forward and one backward.
"""

import importlib.util
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.runtime import capability

INSTALLED = importlib.util.find_spec("triton") is not None
DEVICES = ("cuda",)
"""Device types that Triton compiles for; tests add the CPU, on which its interpreter runs."""
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_SIZE = 8192
"""Maximum row length: a program holds whole rows in registers."""
Data = Float[Tensor, "*rows size"]
Mask = Bool[Tensor, "*rows"]


class ResidualOptions(NamedTuple):
    """Options of a residual connection: `added` is a bias of the sublayer's output, and norms are zeros outside `keep`."""

    chance: float = 0.0
    post: bool = False
    added: Float[Tensor, " size"] | None = None
    keep: Mask | None = None


def covers(data: Data, norm: nn.Module) -> str | None:
    """Reason why the kernel cannot replace sum and norm here, or None."""
    if data.device.type not in DEVICES:
        return f"needs a GPU, got {data.device.type}"
    if not INSTALLED:
        return "needs Triton, which is not installed; pip install triton"
    if not torch.is_grad_enabled():
        return "is for learning, and nothing here has a gradient"
    if not isinstance(norm, nn.LayerNorm | nn.RMSNorm) or norm.weight is None or len(norm.normalized_shape) != 1:
        return f"needs a LayerNorm or RMSNorm of one axis with weights, got {type(norm).__name__}"
    if data.dtype not in DTYPES:
        return f"needs float32, float16 or bfloat16, got {str(data.dtype).removeprefix('torch.')}"
    if data.shape[-1] > MAX_SIZE or data.numel() == 0:
        return f"needs rows of 1 to {MAX_SIZE} numbers, got {tuple(data.shape)}"
    if torch.compiler.is_compiling():
        return "cannot be traced"
    return capability.find_obstacle(data.device, find_product_dtype(data))


def find_product_dtype(data: Data) -> torch.dtype:
    """Dtype of matrix products, to which norms are cast."""
    kind = data.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else data.dtype


def normalise(data: Data, norm: nn.Module, keep: Mask | None = None) -> Data:
    """Norm of the data in the dtype of matrix products; zeros outside `keep`."""
    normalised: Data = run_kernel(data, None, norm, ResidualOptions(keep=keep), find_product_dtype(data))[1]
    return normalised


def add_and_normalise(data: Data, output: Data, norm: nn.Module, options: ResidualOptions) -> tuple[Data, Data]:
    """Residual stream after the sublayer, and the normalised input of the next one.

    pre:  y = data + drop(output + added),  norm(y)
    post: norm(data + drop(output + added)), twice

    The input is in the dtype of matrix products, the residual stream keeps its own.
    """
    half = find_product_dtype(data)
    if options.post and half == data.dtype:
        stream = run_kernel(data, output, norm, options, None)[0]
        return stream, stream
    return run_kernel(data, output, norm, options, half)


def run_kernel(
    data: Data, output: Data | None, norm: nn.Module, options: ResidualOptions, half: torch.dtype | None
) -> tuple[Any, Any]:
    """Residual stream and normalised input, each None where it is not needed."""
    weight, shift, eps, rms = norm_arguments(norm)
    return AddNorm.apply(data, output, options.added, weight, shift, eps, rms, options, half)  # type: ignore[no-untyped-call]


def norm_arguments(norm: Any) -> tuple[Tensor, Tensor | None, float, bool]:
    """Weight, bias, ε and kind of a norm; an RMSNorm without ε has that of its dtype."""
    rms = isinstance(norm, nn.RMSNorm)
    eps = torch.finfo(norm.weight.dtype).eps if norm.eps is None else norm.eps
    return norm.weight, None if rms else norm.bias, eps, rms


class AddNorm(torch.autograd.Function):
    """Autograd function of sum and norm; post-norm returns the norm in both dtypes, pre-norm returns sum and norm."""

    @staticmethod
    def forward(
        ctx: Any,
        data: Tensor,
        output: Tensor | None,
        added: Tensor | None,
        weight: Tensor,
        shift: Tensor | None,
        eps: float,
        rms: bool,
        options: ResidualOptions,
        half: torch.dtype | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        from regard.kernels.triton.add_norm.launch import NormArguments, forward

        drops = output is not None and options.chance > 0
        seed = torch.randint(2**31 - 1, (1,), device=data.device) if drops else None
        keep = None if options.keep is None else options.keep.reshape(-1).contiguous()
        arguments = NormArguments(weight, shift, eps, rms, seed, options.chance, keep)
        rows, size = data.reshape(-1, data.shape[-1]).contiguous(), data.shape[-1]
        sublayer = None if output is None else output.reshape(-1, size).contiguous()
        saved = forward(rows, sublayer, added, arguments, options.post, half)
        ctx.save_for_backward(saved.total, saved.centres, saved.scales, weight, seed, keep)
        ctx.settings = eps, rms, options.chance, options.post, shift is not None, data.shape
        ctx.kinds = None if output is None else output.dtype, None if added is None else added.dtype
        ctx.set_materialize_grads(False)
        stream = saved.wide if options.post else None if output is None else saved.total
        return tuple(None if tensor is None else tensor.view(data.shape) for tensor in (stream, saved.entered))  # type: ignore[return-value]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        from regard.kernels.triton.add_norm.launch import ForwardOutput, NormArguments, backward

        total, centres, scales, weight, seed, keep = ctx.saved_tensors
        eps, rms, chance, post, shifted, shape = ctx.settings
        output_dtype, added_dtype = ctx.kinds
        stream, entered = (None if d is None else d.reshape(total.shape).contiguous() for d in gradients)
        arguments, saved = (
            NormArguments(weight, None, eps, rms, seed, chance, keep),
            ForwardOutput(total, None, None, centres, scales),
        )
        d_outputs = (None, stream, entered) if post else (stream, None, entered)
        d = backward(saved, arguments, output_dtype, added_dtype is not None, *d_outputs)
        return (
            d.data.view(shape),
            None if d.sublayer is None else d.sublayer.view(shape),
            None if d.added is None else d.added.to(added_dtype),
            d.weight.to(weight.dtype),
            d.shift.to(weight.dtype) if shifted else None,
            *[None] * 4,
        )
