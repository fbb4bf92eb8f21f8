"""Fused linear + cross-entropy: the loss of hidden states without ever holding the logits of all tokens.

Logits are many times larger than all other activations. Here a few rows of them at a time are computed, scored, turned into
their own gradient and used up while they are still in the cache; only the gradients of the three inputs are kept.
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
    wanted: Int[Tensor, " rows"],
    smoothing: float = 0.0,
    confidence: float = 0.0,
    kept: Bool[Tensor, " rows"] | None = None,
) -> LossSums:
    """Cross-entropy with label smoothing, less `confidence` times the entropy, of logits = hidden weightᵀ + bias.

        Σ_t  -(1 - ε) log p(y_t) - ε / V Σ_v log p(v) + β Σ_v p(v) log p(v)

    Equal to `losses.cross_entropy` and `losses.entropy` of the logits; only `total` passes a gradient, and that once. Rows
    outside `kept` count for nothing. Leaving them out of `hidden` would save their work, but how many remain is known only
    to the device, and reading it would synchronise with the GPU.
    """
    if not torch.is_grad_enabled():  # an autograd function cannot tell, and would compute unused gradients
        hidden, weight, bias = hidden.detach(), weight.detach(), bias.detach()
    return LossSums(*LinearCrossEntropy.apply(hidden, weight, bias, wanted, kept, smoothing, confidence))  # type: ignore[no-untyped-call]


class LinearCrossEntropy(torch.autograd.Function):
    """Autograd function that computes the gradients in forward, while it has the logits, and returns them in backward."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        wanted: Tensor,
        kept: Tensor | None,
        smoothing: float,
        confidence: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.needed = ctx.needs_input_grad[:3]
        kind = hidden.device.type
        half = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
        with torch.autocast(kind, enabled=False):
            pass_ = ChunkedPass(hidden.to(half), weight.to(half), bias, any(ctx.needed), smoothing, confidence)
            for some in (
                split_rows(len(hidden), CHUNK_ROWS[kind])
                if kind in CHUNK_ROWS
                else split_evenly(len(hidden), GPU_CHUNK_ROWS)
            ):
                pass_.take(some, wanted[some], None if kept is None else kept[some, None])
        ctx.kinds = hidden.dtype, weight.dtype, bias.dtype
        ctx.save_for_backward(pass_.d_hidden, pass_.d_weight, pass_.d_bias)
        ctx.mark_non_differentiable(pass_.nll, pass_.entropy)
        return pass_.total, pass_.nll, pass_.entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, flowing: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        found = [
            (each * flowing).to(kind) if needed else None
            for each, kind, needed in zip(ctx.saved_tensors, ctx.kinds, ctx.needed, strict=True)
        ]
        return *found, None, None, None, None


def split_rows(rows: int, most: int) -> list[slice]:
    """Slices of at most `most` rows, the last one shorter."""
    return [slice(first, first + most) for first in range(0, rows, most)]


def split_evenly(rows: int, most: int) -> list[slice]:
    """Slices of nearly equal length, as few as fit `most` rows each: a short last one would leave a GPU idle."""
    count = -(-rows // most)
    return [slice(rows * part // count, rows * (part + 1) // count) for part in range(count)]


class ChunkedPass:
    """Pass over the rows that accumulates losses and gradients, in float32 or better whatever the inputs are in."""

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, learns: bool, smoothing: float, confidence: float):
        self.hidden, self.weight, self.bias, self.learns = hidden, weight, bias.to(_find_sum_dtype(hidden)), learns
        self.smoothing, self.confidence = smoothing, confidence
        wide = self.bias.dtype
        self.total, self.nll, self.entropy = (hidden.new_zeros((), dtype=wide) for _ in range(3))
        sizes = (hidden.shape, weight.shape, bias.shape) if learns else ((0,),) * 3
        self.d_hidden = hidden.new_empty(sizes[0])
        self.d_weight, self.d_bias = hidden.new_zeros(sizes[1], dtype=wide), hidden.new_zeros(sizes[2], dtype=wide)

    def take(self, rows: slice, wanted: Int[Tensor, " some"], kept: Bool[Tensor, "some 1"] | None) -> None:
        """Compute the logits of some rows, their loss, and the gradients in place."""
        hidden = self.hidden[rows]
        logits = hidden @ self.weight.mT
        slope = self.in_one_pass(logits, wanted, kept) if self.fused else self.in_steps(logits, wanted, kept)
        if slope is None:
            return
        self.d_bias += slope.sum(0, dtype=self.d_bias.dtype)
        slope = slope.to(hidden.dtype)
        torch.matmul(slope, self.weight, out=self.d_hidden[rows])
        if slope.dtype == self.d_weight.dtype:
            self.d_weight.addmm_(slope.mT, hidden)
        else:
            self.d_weight += slope.mT @ hidden

    @property
    def fused(self) -> bool:
        """True if the Triton kernel computes the loss: on a GPU that it compiles for."""
        device, dtype = self.hidden.device, self.hidden.dtype
        fits = INSTALLED and device.type in DEVICES and self.bias.dtype == torch.float32
        return fits and capability.find_obstacle(device, dtype) is None

    def in_one_pass(
        self, logits: Float[Tensor, "some vocabulary"], wanted: Int[Tensor, " some"], kept: Bool[Tensor, "some 1"] | None
    ) -> Float[Tensor, "some vocabulary"] | None:
        """Loss of some logits by one fused kernel; returns their gradient, written in place."""
        from regard.kernels.triton.cross_entropy.kernel import compute_cross_entropy

        counts = None if kept is None else kept[:, 0]
        total, nll, undecided = compute_cross_entropy(
            logits, self.bias, wanted, counts, self.smoothing, self.confidence, self.learns
        ).sum(1)
        self.total += total
        self.nll += nll
        self.entropy += undecided
        return logits if self.learns else None

    def in_steps(
        self, logits: Float[Tensor, "some vocabulary"], wanted: Int[Tensor, " some"], kept: Bool[Tensor, "some 1"] | None
    ) -> Float[Tensor, "some vocabulary"] | None:
        """Loss of some logits by separate operations; returns their gradient."""
        vocabulary = len(self.bias)
        logits = logits.to(self.bias.dtype).add_(self.bias)
        log = logits.sub_(logits.logsumexp(-1, keepdim=True))
        nll = -_mask_rows(log.gather(1, wanted[:, None]), kept).sum()
        self.nll += nll
        self.total += (1 - self.smoothing) * nll
        if self.smoothing:
            self.total -= self.smoothing / vocabulary * _mask_rows(log.sum(-1, keepdim=True), kept).sum()
        share = log.exp() if self.confidence else log.exp_()
        if self.confidence:
            undecided = -(share * log).sum(-1, keepdim=True)
            self.entropy += _mask_rows(undecided, kept).sum()
            self.total -= self.confidence * _mask_rows(undecided, kept).sum()
        if not self.learns:
            return None
        slope = share * (1 + self.confidence * (log + undecided)) if self.confidence else share
        if self.smoothing:
            slope -= self.smoothing / vocabulary
        slope.scatter_add_(1, wanted[:, None], slope.new_full((len(wanted), 1), self.smoothing - 1))
        return _mask_rows(slope, kept)


def _mask_rows(data: Tensor, kept: Tensor | None) -> Tensor:
    """Set rows outside `kept` to zero."""
    return data if kept is None else data.masked_fill(~kept, 0.0)


def _find_sum_dtype(data: Tensor) -> torch.dtype:
    return torch.promote_types(data.dtype, torch.float32)
