"""Parity of what is no attend(): windows that queries place, chosen rows, far ranges, the LSTM decoder's loop, the loss,
norms of maps, and what stands between the products of a Transformer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import _bare  # noqa: F401
from _parity import DEVICE, GPU, LENGTH, Found, Verdict, judged, padding, request
from regard.attention import dispatch, expected_monotonic, masked_norm
from regard.attention.attend import run_reference
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.mechanisms.mocha import Mocha
from regard.attention.scope.causal import Causal
from regard.attention.types import Encoded
from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import Padded
from regard.kernels import short
from regard.kernels import weights as rows
from regard.losses import linear_cross_entropy
from regard.models.attention_factory import build_attention
from regard.models.decoders import recurrent_fused
from regard.models.decoders.recurrent import Recurrent
from regard.models.layers import add_norm
from regard.models.layers import feedforward as thinking
from regard.models.layers.residual import Residual
from regard.models.layers.transformer import Sublayers
from regard.models.seq2seq import build
from regard.training.mixed_precision import CastWeights

SIZE = 64 if GPU else 5
SURE = 6.0
"""A bias that what a norm feeds a matrix does not reach: that spreads by about 0.8."""


def windows(build: Callable[[], nn.Module], dtype: torch.dtype) -> Verdict:
    """local_m or local_p: context, and the gradients of both sides and of every parameter."""
    made = build().to(DEVICE, dtype)
    query, source = (torch.randn(2, LENGTH, SIZE, device=DEVICE, dtype=dtype) for _ in range(2))
    return sides(partial(windowed, made, query, source), dtype)


def windowed(made: Any, query: Tensor, source: Tensor, impl: str, dtype: torch.dtype) -> Found:
    """By the kernel or by gathered windows."""
    run = deepcopy(made).to(dtype)
    run.impl = impl
    leaves = [each.detach().to(dtype).requires_grad_() for each in (query, source)]
    context = run(leaves[0], run.remember(Encoded(leaves[1], padding().keep))).context
    flow = torch.linspace(-3, 3, context.numel(), dtype=torch.float64, device=DEVICE).cos().view_as(context)
    return Found([context.detach()], list(torch.autograd.grad(context, [*leaves, *run.parameters()], flow.to(dtype))))


def sides(run: Callable[[str, torch.dtype], Found], dtype: torch.dtype) -> Verdict:
    """Fused twice, in plain steps, and these in double precision."""
    fused = [run("fused", dtype) for _ in range(2)]
    return judged(*fused, run("reference", dtype), run("reference", torch.float64))


def chosen(dtype: torch.dtype) -> Verdict:
    """The weights of a few queries and heads, beside those rows of all weights."""
    asked, places = request(dtype, scope=Causal() & padding()), [0, LENGTH // 2, LENGTH - 1]
    mine = [Found([rows.select_weights(asked, places, [1, 3])], []) for _ in range(2)]
    wide = asked._replace(query=asked.query.double(), keys=asked.keys.double(), values=asked.values.double())
    plain, exact = (
        Found([run_reference(each._replace(weights=True)).weights[:, [1, 3]][:, :, places]], []) for each in (asked, wide)
    )
    return judged(*mine, plain, exact)


def corners(dtype: torch.dtype) -> Verdict:
    """q = 60 and k = -59.5 meet at 0.5, and keys that nobody may see may hold NaN."""
    from regard.kernels.triton.additive import operator
    from regard.kernels.triton.additive.arguments import MaskArguments

    v = torch.randn(1, 24, device=DEVICE, dtype=dtype)
    far, near = (torch.full((2, 1, 19, 24), each, device=DEVICE, dtype=dtype) for each in (60.0, -59.5))
    keep = torch.arange(19, device=DEVICE)[None] < torch.tensor([[0], [11]], device=DEVICE)
    poisoned = near.masked_fill(~keep[:, None, :, None], torch.nan)

    def ours() -> Found:
        context, _ = operator.attention(far, poisoned, poisoned, v, MaskArguments(keep))
        return Found([operator.scores(far, near, v), context], [])

    def right(kind: torch.dtype) -> Found:
        scores = (torch.tanh(far.to(kind) + near.to(kind)) @ v[0].to(kind))[:, :, :, None].expand(-1, -1, -1, 19)
        return Found([scores, near.to(kind) * keep.any(1)[:, None, None, None]], [])  # of equal values the mean is each

    return judged(ours(), ours(), right(dtype), right(torch.float64))


def loop(dtype: torch.dtype) -> Verdict:
    """Luong's decoder as one operation, beside the steps one by one; halves by autocast."""
    batch, steps, keys, width = (33, 12, 40, 96) if GPU else (3, 3, 7, 5)
    decoder = Recurrent(100, width, width, attention=partial(build_attention, "bilinear")).to(DEVICE)
    tokens = torch.randint(100, (batch, steps), device=DEVICE)
    source, final = torch.randn(batch, keys, width, device=DEVICE), torch.randn(batch, 1, width, device=DEVICE)
    keep = torch.arange(keys, device=DEVICE) < torch.randint(1, keys + 1, (batch, 1), device=DEVICE)
    flow = torch.randn(batch, steps, width, device=DEVICE)

    def run(impl: str, kind: torch.dtype) -> Found:
        model, wide = deepcopy(decoder), torch.float64 if kind == torch.float64 else torch.float32
        model.to(wide)
        data = source.to(wide).requires_grad_()
        with (
            without(*by(recurrent_fused, impl)),
            torch.autocast(DEVICE, kind, enabled=kind in (torch.float16, torch.bfloat16)),
        ):
            read = model(tokens, model.remember(Encoded(data, keep, (final.to(wide),))), project=False).output
        learned = [each for name, each in model.named_parameters() if not name.startswith("output")]
        return Found([read.detach()], list(torch.autograd.grad(read, [data, *learned], flow.to(read.dtype))))

    return sides(run, dtype)


def loss(dtype: torch.dtype) -> Verdict:
    """Projection and label-smoothed cross-entropy; halves by autocast."""
    tokens, size, words = (5000, 64, 16001) if GPU else (150, 64, 401)
    given = torch.randn(tokens, size), torch.randn(words, size) / 8, torch.randn(words)
    wanted, kept = torch.randint(words, (tokens,), device=DEVICE), torch.rand(tokens, device=DEVICE) < 0.9

    def run(impl: str, kind: torch.dtype) -> Found:
        wide = torch.float64 if kind == torch.float64 else torch.float32
        leaves = [each.to(DEVICE, wide).requires_grad_() for each in given]
        with (
            without(*by(linear_cross_entropy, impl)),
            torch.autocast(DEVICE, kind, enabled=kind in (torch.float16, torch.bfloat16)),
        ):
            total = linear_cross_entropy.linear_cross_entropy(*leaves, wanted, 0.1, 0.05, kept).total
        return Found([total.detach()], list(torch.autograd.grad(total, leaves)))

    return sides(run, dtype)


def norm(kind: type[nn.Module], dtype: torch.dtype) -> Verdict:
    """A norm over the kept places of maps of different sizes, what goes around it, and max(0, ·)."""
    batch, channels, height, width = (6, 72, 37, 53) if GPU else (2, 24, 3, 5)
    image, around = (torch.randn(batch, channels, height, width, device=DEVICE, dtype=dtype) for _ in range(2))
    rows = torch.arange(batch, device=DEVICE)[:, None]
    keep = (torch.arange(height, device=DEVICE) < height - rows)[:, :, None].expand(-1, -1, width)
    made = kind(channels).to(DEVICE)
    for each in made.parameters():
        nn.init.normal_(each)

    return sides(partial(mapped, made, image, around, keep), dtype)


def mapped(made: nn.Module, image: Tensor, around: Tensor, keep: Tensor, impl: str, dtype: torch.dtype) -> Found:
    """By the kernel or by PyTorch's operations."""
    normed = deepcopy(made).double() if dtype == torch.float64 else deepcopy(made)
    leaves = [each.to(dtype, copy=True).requires_grad_() for each in (image, around)]
    with without(*by(masked_norm, impl)):
        found = normed(leaves[0], keep, rectify=True, residual=leaves[1])
    flow = torch.linspace(-3, 3, found.numel(), dtype=torch.float64, device=DEVICE).cos().view_as(found)
    return Found([found.detach()], list(torch.autograd.grad(found, [*leaves, *normed.parameters()], flow.to(dtype))))


def walk(dtype: torch.dtype) -> Verdict:
    """Mocha in training, which has all the chances of where it stops; certain of nothing, so that it gets along all keys."""
    made = Mocha(SIZE, r=-2.0, noise=0.0).train().to(DEVICE, dtype)
    query, source = (torch.randn(2, each, SIZE, device=DEVICE, dtype=dtype) for each in (LENGTH // 5, LENGTH))
    return sides(partial(walked, made, query, source), dtype)


def walked(made: Mocha, query: Tensor, source: Tensor, impl: str, dtype: torch.dtype) -> Found:
    """By the kernel or query by query."""
    with without(*by(expected_monotonic, impl)):
        return windowed(made, query, source, made.impl, dtype)


def residual(kind: str, dtype: torch.dtype) -> Verdict:
    """Leaving one sublayer and entering the next, and entering alone; halves by autocast."""
    size = 300 if GPU else 20
    made, following = Residual(size, kind).to(DEVICE), Residual(size, kind).norm.to(DEVICE)
    made.added = torch.randn(size, device=DEVICE)
    given = torch.randn(7, 33, size, device=DEVICE), torch.randn(7, 33, size, device=DEVICE).to(dtype)
    flows = [torch.randn(7, 33, size, device=DEVICE) for _ in range(3)]

    def run(impl: str, kind: torch.dtype) -> Found:
        wide = torch.float64 if kind == torch.float64 else torch.float32
        around, norm = deepcopy(made).to(wide), deepcopy(following).to(wide)
        half = kind in (torch.float16, torch.bfloat16)
        leaves = [given[0].to(wide).requires_grad_(), given[1].to(wide if not half else kind).requires_grad_()]
        with without(*by(add_norm, impl)), torch.autocast(DEVICE, kind, enabled=half):
            stream, entered = around.add_and_normalise(*leaves, norm)
            outputs = stream, entered.to(kind), around.normalise_input(leaves[0]).to(kind)
        total = sum((each * flow.to(each.dtype)).double().sum() for each, flow in zip(outputs, flows, strict=True))
        learned = (norm if around.first else around.norm).parameters()
        return Found([each.detach() for each in outputs], list(torch.autograd.grad(total, [*leaves, *learned])))

    return sides(run, dtype)


def feedforward(dtype: torch.dtype) -> Verdict:
    """W₂ max(0, W₁ x + b₁) + b₂."""
    made, data = Sublayers(SIZE).build_feedforward().to(DEVICE, dtype), torch.randn(7, 33, SIZE, device=DEVICE, dtype=dtype)
    flow = torch.randn(7, 33, SIZE, device=DEVICE)

    def run(impl: str, kind: torch.dtype) -> Found:
        network, leaf = deepcopy(made).to(kind), data.to(kind).requires_grad_()
        with without(*by(thinking, impl)):
            found = network(leaf)
        return Found([found.detach()], list(torch.autograd.grad(found, [leaf, *network.parameters()], flow.to(kind))))

    return sides(run, dtype)


def layers(dtype: torch.dtype) -> Verdict:
    """A small Transformer from tokens to what is projected: all kernels of an update, matrices rounded in one go."""
    size, rows, count = (64, 5, 2) if GPU else (8, 2, 1)
    named = AttentionPart("transformer", heads=2)
    shape = Model(encoder="transformer", decoder="transformer", attention=named, hidden_size=size, heads=2, layers=count)
    built = build(shape, Dropout(0.0, 0.0), 50, 50, True).to(DEVICE)
    for each in built.parameters():
        if each.ndim == 1:
            nn.init.normal_(each, 1.0, 0.3)
    decide(built)
    tokens, lengths = torch.randint(50, (rows, 9), device=DEVICE), torch.tensor([[9], [4], [1], [7], [2]], device=DEVICE)
    keep = torch.arange(9, device=DEVICE) < lengths[:rows]
    flow = torch.randn(rows, 9, size, device=DEVICE)

    def run(impl: str, kind: torch.dtype) -> Found:
        model, half = deepcopy(built), kind in (torch.float16, torch.bfloat16)
        model.to(torch.float64 if kind == torch.float64 else torch.float32)
        absent = [] if impl == "fused" else [add_norm, thinking, short]
        with without(*absent), torch.autocast(DEVICE, kind, enabled=half), nullcontext() if absent else CastWeights(model):
            found = model(Padded(tokens, keep), tokens, project=False).output.to(kind)  # as the product that follows has it
        learned = [each for name, each in model.named_parameters() if not name.startswith("decoder.output")]
        return Found([found.detach()], list(torch.autograd.grad((found * flow.to(found.dtype)).double().sum(), learned)))

    return sides(run, dtype)


def decide(model: nn.Module) -> None:
    """Every second unit of the feed-forward networks open in all rows, the others shut in all.

    max(0, x) has two slopes at 0. Of thousands of units some are within a rounding of it, which one side opens and another
    does not: how far a gradient may be off would be luck. `feedforward`, where both sides read the same numbers, has units
    that some rows open.
    """
    for network in model.modules():
        if isinstance(network, thinking.FeedForward):
            nn.init.constant_(network[0].bias[::2], SURE)
            nn.init.constant_(network[0].bias[1::2], -SURE)


def by(kernel: Any, impl: str) -> list[Any]:
    """What "reference" goes without."""
    return [] if impl == "fused" else [kernel]


@contextmanager
def without(*kernels: Any) -> Iterator[None]:
    """As if these covered no device."""
    before = [kernel.DEVICES for kernel in kernels]
    for kernel in kernels:
        kernel.DEVICES = ()
    dispatch.forget_decisions()
    try:
        yield
    finally:
        for kernel, devices in zip(kernels, before, strict=True):
            kernel.DEVICES = devices
        dispatch.forget_decisions()


def cases() -> dict[str, Callable[[torch.dtype], Verdict]]:
    """By name, the kernel first."""
    return {
        "additive corners": corners,
        "rows chosen": chosen,
        "local m": partial(windows, lambda: LocalM(SIZE, width=5)),
        "local p": partial(windows, lambda: LocalP(SIZE, width=5)),
        "loop lstm": loop,
        "chances": walk,
        "norm batch": partial(norm, masked_norm.BatchNorm),
        "norm group": partial(norm, masked_norm.GroupNorm),
        "loss": loss,
        "residual pre": partial(residual, "pre"),
        "residual post": partial(residual, "post"),
        "residual rms": partial(residual, "rms"),
        "feedforward": feedforward,
        "layers": layers,
    }
