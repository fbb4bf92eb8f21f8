"""Fused linear + cross-entropy: the loss of hidden states without ever holding the logits of all tokens.

Logits are many times larger than all other activations. Here a few rows of them at a time are computed, scored and
overwritten by their own gradient while they are still in the cache; only the gradients of the three inputs are stored.
"""

import importlib.util
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.kernels.runtime import capability

CHUNK_ROWS = {"cpu": 256}
"""Rows of logits at a time: few enough for a CPU's cache; elsewhere as many as keep a GPU busy."""
GPU_CHUNK_ROWS = 8192
INSTALLED = importlib.util.find_spec("triton") is not None
DEVICES = ("cuda",)
"""Device types that Triton compiles for; tests add the CPU, on which its interpreter runs."""


class LossSums(NamedTuple):
    """Sums over all rows: the loss to minimise, and the plain cross-entropy and entropy for the log."""

    total: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    entropy: Float[Tensor, ""]


def linear_cross_entropy(
    hidden: Float[Tensor, "rows size"],
    weight: Float[Tensor, "vocabulary size"],
    bias: Float[Tensor, " vocabulary"],
    target: Int[Tensor, " rows"],
    smoothing: float = 0.0,
    confidence: float = 0.0,
    keep: Bool[Tensor, " rows"] | None = None,
) -> LossSums:
    """Cross-entropy with label smoothing, less `confidence` times the entropy, of logits = hidden weightᵀ + bias.

        Σ_t  -(1 - ε) log p(y_t) - ε / V Σ_v log p(v) + β Σ_v p(v) log p(v)

    Equal to `losses.cross_entropy` and `losses.entropy` of the logits; only `total` passes a gradient, and that once. Rows
    outside `keep` count for nothing. Leaving them out of `hidden` would save their work, but their number is known only to
    the device, and reading it would synchronise with the GPU.
    """
    if not torch.is_grad_enabled():  # an autograd function cannot tell, and would compute unused gradients
        hidden, weight, bias = hidden.detach(), weight.detach(), bias.detach()
    sums = LinearCrossEntropy.apply(hidden, weight, bias, target, keep, smoothing, confidence)  # type: ignore[no-untyped-call]
    return LossSums(*sums)


class LinearCrossEntropy(torch.autograd.Function):
    """Autograd function that computes the gradients in forward, while it has the logits, and returns them in backward."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        keep: Tensor | None,
        smoothing: float,
        confidence: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.needed = ctx.needs_input_grad[:3]
        device_type = hidden.device.type
        dtype = torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else hidden.dtype
        with torch.autocast(device_type, enabled=False):
            chunks = ChunkedPass(hidden.to(dtype), weight.to(dtype), bias, any(ctx.needed), smoothing, confidence)
            for rows in (
                chunk_rows(len(hidden), CHUNK_ROWS[device_type])
                if device_type in CHUNK_ROWS
                else chunk_evenly(len(hidden), GPU_CHUNK_ROWS)
            ):
                chunks.add_rows(rows, target[rows], None if keep is None else keep[rows, None])
        ctx.kinds = hidden.dtype, weight.dtype, bias.dtype
        ctx.save_for_backward(chunks.d_hidden, chunks.d_weight, chunks.d_bias)
        ctx.mark_non_differentiable(chunks.nll, chunks.entropy)
        return chunks.total, chunks.nll, chunks.entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        gradients = [
            (saved * gradient).to(dtype) if needed else None
            for saved, dtype, needed in zip(ctx.saved_tensors, ctx.kinds, ctx.needed, strict=True)
        ]
        return *gradients, None, None, None, None


def chunk_rows(rows: int, max_rows: int) -> list[slice]:
    """Slices of at most `most` rows, the last one shorter."""
    return [slice(first, first + max_rows) for first in range(0, rows, max_rows)]


def chunk_evenly(rows: int, max_rows: int) -> list[slice]:
    """Slices of nearly equal length, as few as fit `most` rows each: a short last one would leave a GPU idle."""
    count = -(-rows // max_rows)
    return [slice(rows * part // count, rows * (part + 1) // count) for part in range(count)]


class ChunkedPass:
    """Pass over the rows that accumulates losses and gradients, in float32 or better whatever the inputs are in."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, learns: bool, smoothing: float, confidence: float):
        self.hidden, self.weight, self.bias, self.learns = hidden, weight, bias.to(_find_sum_dtype(hidden)), learns
        self.smoothing, self.confidence = smoothing, confidence
        sum_dtype = self.bias.dtype
        self.total, self.nll, self.entropy = (hidden.new_zeros((), dtype=sum_dtype) for _ in range(3))
        sizes = (hidden.shape, weight.shape, bias.shape) if learns else ((0,),) * 3
        self.d_hidden = hidden.new_empty(sizes[0])
        self.d_weight, self.d_bias = hidden.new_zeros(sizes[1], dtype=sum_dtype), hidden.new_zeros(sizes[2], dtype=sum_dtype)

    def add_rows(self, rows: slice, target: Int[Tensor, " some"], keep: Bool[Tensor, "some 1"] | None) -> None:
        """Compute the logits of some rows, their loss, and the gradients in place."""
        hidden = self.hidden[rows]
        logits = hidden @ self.weight.mT
        d_logits = (self.score_fused if self.fused else self.score_stepwise)(logits, target, keep)
        if d_logits is None:
            return
        self.d_bias += d_logits.sum(0, dtype=self.d_bias.dtype)
        d_logits = d_logits.to(hidden.dtype)
        torch.matmul(d_logits, self.weight, out=self.d_hidden[rows])
        if d_logits.dtype == self.d_weight.dtype:
            self.d_weight.addmm_(d_logits.mT, hidden)
        else:
            self.d_weight += d_logits.mT @ hidden

    @property
    def fused(self) -> bool:
        """True if the Triton kernel computes the loss: on a GPU that it compiles for."""
        device, dtype = self.hidden.device, self.hidden.dtype
        fits = INSTALLED and device.type in DEVICES and self.bias.dtype == torch.float32
        return fits and capability.find_obstacle(device, dtype) is None

    def score_fused(
        self, logits: Float[Tensor, "some vocabulary"], target: Int[Tensor, " some"], keep: Bool[Tensor, "some 1"] | None
    ) -> Float[Tensor, "some vocabulary"] | None:
        """Loss of some logits by one fused kernel; returns their gradient, written in place."""
        from regard.kernels.triton.cross_entropy.kernel import compute_cross_entropy

        counts = None if keep is None else keep[:, 0]
        total, nll, entropy = compute_cross_entropy(
            logits, self.bias, target, counts, self.smoothing, self.confidence, self.learns
        ).sum(1)
        self.total += total
        self.nll += nll
        self.entropy += entropy
        return logits if self.learns else None

    def score_stepwise(
        self, logits: Float[Tensor, "some vocabulary"], target: Int[Tensor, " some"], keep: Bool[Tensor, "some 1"] | None
    ) -> Float[Tensor, "some vocabulary"] | None:
        """Loss of some logits by separate operations; returns their gradient."""
        vocabulary = len(self.bias)
        logits = logits.to(self.bias.dtype).add_(self.bias)
        log_probabilities = logits.sub_(logits.logsumexp(-1, keepdim=True))
        nll = -_mask_rows(log_probabilities.gather(1, target[:, None]), keep).sum()
        self.nll += nll
        self.total += (1 - self.smoothing) * nll
        if self.smoothing:
            self.total -= self.smoothing / vocabulary * _mask_rows(log_probabilities.sum(-1, keepdim=True), keep).sum()
        probabilities = log_probabilities.exp() if self.confidence else log_probabilities.exp_()
        if self.confidence:
            entropy = -(probabilities * log_probabilities).sum(-1, keepdim=True)
            self.entropy += _mask_rows(entropy, keep).sum()
            self.total -= self.confidence * _mask_rows(entropy, keep).sum()
        if not self.learns:
            return None
        d_logits = (
            probabilities * (1 + self.confidence * (log_probabilities + entropy)) if self.confidence else probabilities
        )
        if self.smoothing:
            d_logits -= self.smoothing / vocabulary
        d_logits.scatter_add_(1, target[:, None], d_logits.new_full((len(target), 1), self.smoothing - 1))
        return _mask_rows(d_logits, keep)


def _mask_rows(data: Tensor, keep: Tensor | None) -> Tensor:
    """Set rows outside `keep` to zero."""
    return data if keep is None else data.masked_fill(~keep, 0.0)


def _find_sum_dtype(data: Tensor) -> torch.dtype:
    return torch.promote_types(data.dtype, torch.float32)
