"""Feed-forward network of a Transformer layer, gated (GLU) or not, and fused for training on a GPU."""

import importlib.util
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.runtime import capability

INSTALLED = importlib.util.find_spec("triton") is not None
DEVICES = ("cuda",)
"""Device types that Triton compiles for; tests add the CPU, on which its interpreter runs."""
Data = Float[Tensor, "*rows size"]


class FeedForward(nn.Sequential):
    """Feed-forward network W₂ f(W₁ x + b₁) + b₂, where W₁ and f may be a Gate.

    Vaswani et al. 2017, section 3.3, https://arxiv.org/abs/1706.03762
    In training on a GPU with f = ReLU, f is fused into the first product in forward and into the sum for db₁ in backward.
    """

    def forward(self, data: Data) -> Data:
        if covers(self, data) is not None:
            plain: Data = super().forward(data)  # type: ignore[no-untyped-call]
            return plain
        first, _, last = self
        return FusedFeedForward.apply(data, first.weight, first.bias, last.weight, last.bias)  # type: ignore[no-untyped-call]


class Gate(nn.Module):
    """Gated linear unit: one projection of the data, through an activation, gates another.

        f(W x) ∘ V x

    Shazeer 2020, https://arxiv.org/abs/2002.05202: GEGLU with f = GELU, SwiGLU with f = swish.
    """

    def __init__(self, size: int, inner: int, activation: nn.Module, bias: bool = True):
        super().__init__()
        self.W, self.V = nn.Linear(size, inner, bias), nn.Linear(size, inner, bias)
        self.activation = activation

    def forward(self, data: Float[Tensor, "*rows size"]) -> Float[Tensor, "*rows inner"]:
        opened: Tensor = self.activation(self.W(data)) * self.V(data)
        return opened


def covers(network: nn.Sequential, data: Data) -> str | None:
    """Reason why `Thought` cannot replace the single layers here, or None."""
    if data.device.type not in DEVICES:
        return f"needs a GPU, got {data.device.type}"
    if not INSTALLED:
        return "needs Triton, which is not installed; pip install triton"
    if not torch.is_grad_enabled():
        return "is for learning, and nothing here has a gradient"
    if [type(module) for module in network] != [nn.Linear, nn.ReLU, nn.Linear]:
        return f"needs Linear, ReLU and Linear, got {', '.join(type(module).__name__ for module in network)}"
    first, last = network[0], network[2]
    if first.bias is None:
        return "needs a bias in the middle, and there is none"
    kinds = {tensor.dtype for tensor in (data, first.weight, first.bias, last.weight, last.bias) if tensor is not None}
    if len(kinds) > 1 or data.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        named = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
        return f"needs data and matrices in one of float32, float16 and bfloat16, got {named}"
    if torch.is_autocast_enabled(data.device.type) and torch.get_autocast_dtype(data.device.type) != data.dtype:
        return "needs data and matrices in the precision of autocast"
    if torch.compiler.is_compiling():
        return "cannot be traced"
    return capability.find_obstacle(data.device, data.dtype)


class FusedFeedForward(torch.autograd.Function):
    """Autograd function of W₂ max(0, W₁ x + b₁) + b₂ with a fused ReLU."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor | None) -> Tensor:
        flat = data.reshape(-1, data.shape[-1])
        middle = torch._addmm_activation(b1, flat, W1.mT)
        ctx.save_for_backward(flat, middle, W1, W2)
        ctx.biased = b2 is not None
        output = middle @ W2.mT if b2 is None else torch.addmm(b2, middle, W2.mT)
        return output.view(*data.shape[:-1], -1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, flowing: Tensor) -> tuple[Tensor | None, ...]:
        from regard.kernels.triton.bias_relu.backward import mask_gradient

        data, middle, W1, W2 = ctx.saved_tensors
        flat = flowing.reshape(-1, flowing.shape[-1])
        back = flat @ W2
        d_b1 = mask_gradient(back, middle)
        d_data = (back @ W1).view(*flowing.shape[:-1], -1)
        d_b2 = flat.sum(0) if ctx.biased else None
        return d_data, back.mT @ data, d_b1.to(W1.dtype), flat.mT @ middle, d_b2
