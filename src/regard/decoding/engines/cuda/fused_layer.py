"""Fused decoder step in Triton: equals `layer.py`, in fewer launches and fewer bytes.

Self-attention writes the new keys and values into the cache and reads each row's own past by a back-pointer table, where a
mask would multiply it by all rows of its sentence. With few rows, sums, norms and ReLU are fused into the products too: a
layer is eight kernels.
"""

from collections.abc import Sequence
from functools import cache as once
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Memory
from regard.decoding.engines.cuda import add_norm
from regard.decoding.engines.cuda.layer import Rows, add_residual, feed_forward
from regard.decoding.engines.cuda.matrices import LayerWeights, Norm, Weights
from regard.decoding.engines.cuda.types import Counter
from regard.kernels.runtime import capability

DEVICES = ("cuda",)
"""Device types that Triton compiles for; tests add the CPU, on which its interpreter runs."""
FEW, WIDEST = 8, 1024
"""Maximum rows and row length of a fused product."""
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LARGEST = 256
"""Maximum head size, which a program holds in registers."""


class AttentionBuffers(NamedTuple):
    """Buffers of a step's attentions."""

    caches: Sequence[Float[Tensor, "sentences room width both"]]
    sources: Sequence[Memory]
    past: Int[Tensor, "sentences width room"]
    """Back-pointer table: the row of its sentence that each row sees at each position."""
    keep: Bool[Tensor, "sentences keys"]


def covers(layers: Sequence[LayerWeights], device: torch.device, dtype: torch.dtype) -> str | None:
    """Reason why these kernels do not cover the layers, or None."""
    if device.type not in DEVICES:
        return f"needs a GPU, got {device.type}"
    if load_kernels("self_attention") is None:
        return "needs Triton, which is not installed; pip install triton"
    if dtype not in DTYPES:
        return f"needs float32, float16 or bfloat16, got {str(dtype).removeprefix('torch.')}"
    if (size := max(size for layer in layers for size in find_head_sizes(layer))) > LARGEST:
        return f"needs heads of {LARGEST} numbers or fewer, got {size}"
    return capability.find_obstacle(device, dtype)


def find_head_sizes(layer: LayerWeights) -> tuple[int, int]:
    """Head sizes of self-attention and cross-attention."""
    query = layer.size if layer.asks is None else len(layer.asks[0])
    return layer.size // layer.heads, query // layer.cross_heads


def has_kernels(device: torch.device) -> bool:
    """Return True if Triton kernels run on this device."""
    return device.type in DEVICES and load_kernels("embed_argmax") is not None and capability.find_obstacle(device) is None


def can_fuse(layers: Sequence[LayerWeights], rows: int) -> bool:
    """Return True if norms, sums and activations can be fused into products: few rows, pre-norm, ReLU."""
    return rows <= FEW and all(map(is_fusable, layers))


def is_fusable(layer: LayerWeights) -> bool:
    """Return True if a layer has all projections, pre-norm and ReLU."""
    whole = layer.asks is not None and layer.cross_output is not None
    return layer.first and whole and isinstance(layer.bend, nn.ReLU) and layer.norms[0].shape[0] <= WIDEST


def update_backpointers(
    past: Int[Tensor, "sentences width room"], parents: Int[Tensor, "sentences width"], place: Counter
) -> None:
    """Update the back-pointer table; with one row per sentence there is nothing to do."""
    if past.shape[1] > 1:
        load_kernels("self_attention").follow_parents(past, parents, place)


def run_layers(
    layers: Sequence[LayerWeights], enters: Norm | None, data: Rows, buffers: AttentionBuffers, place: Counter
) -> Rows:
    """Run all layers, and the last norm."""
    both = data, data if enters is None else F.layer_norm(data, *enters)
    for number, layer in enumerate(layers):
        residual, entered = both
        output = F.linear(attend_past(layer, F.linear(entered, *layer.threefold), number, buffers, place), *layer.own_output)
        residual, entered = add_residual(layer, 0, residual, output)
        query = entered if layer.asks is None else F.linear(entered, *layer.asks)
        output = attend_source(layer, query, number, buffers)
        output = output if layer.cross_output is None else F.linear(output, *layer.cross_output)
        residual, entered = add_residual(layer, 1, residual, output)
        both = add_residual(layer, 2, residual, feed_forward(layer, entered))
    return both[1]


def run_fused_layers(
    layers: Sequence[LayerWeights], enters: Norm, data: Rows, buffers: AttentionBuffers, place: Counter
) -> Rows:
    """Run all layers for few rows, with norms and sums fused into the products.

    On a GPU with programmatic dependent launch, each begins to read its matrix while the one before it ends.
    """
    norm = enters
    for number, layer in enumerate(layers):
        data, norm = run_fused_layer(layer, norm, data, number, buffers, place), layer.norms[2]
    return F.layer_norm(data, *norm)


def run_fused_layer(
    layer: LayerWeights, norm: Norm, data: Rows, number: int, buffers: AttentionBuffers, place: Counter
) -> Rows:
    """Run one such layer, which begins with `norm`; all kernels are our own."""
    early = load_kernels("tile").supports_pdl(data.device)
    output = attend_past(layer, product(data, layer.threefold, norm, early=early), number, buffers, place, early)
    data = product(output, layer.own_output, residual=data, early=early)
    output = attend_source(layer, product(data, layer.asks, layer.norms[0], early=early), number, buffers, early)
    data = product(output, layer.cross_output, residual=data, early=early)
    output = product(data, layer.inner, layer.norms[1], relu=True, early=early)
    return product(output, layer.outer, residual=data, early=early)


def prepare(
    layers: Sequence[LayerWeights], enters: Norm | None, data: Rows, buffers: AttentionBuffers, place: Counter
) -> None:
    """Launch the kernels of the first layer, the same for all, so that they are compiled (kernels/runtime/compile.py).

    PyTorch's own kernels are left out, as there is no data yet.
    """
    layer = layers[0]
    if enters is not None and can_fuse(layers, len(data)):
        run_fused_layer(layer, enters, data, 0, buffers, place)
        return
    attend_past(layer, data.new_empty(len(data), 3 * layer.size), 0, buffers, place)
    query = data if layer.asks is None else data.new_empty(len(data), len(layer.asks[0]))
    attend_source(layer, query, 0, buffers)
    if add_norm.fits(data):
        add_residual(layer, 0, data, torch.empty_like(data))


def embed(
    tokens: Int[Tensor, " rows"],
    table: Float[Tensor, "vocabulary size"],
    scale: float,
    places: Float[Tensor, "room size"],
    place: Counter,
) -> Rows:
    """Embeddings of tokens at a position."""
    return load_kernels("embed_argmax").embed_tokens(tokens, table, scale, places, place)


def record_step(*numbers: Tensor) -> None:
    """Record a step of greedy search on the device: values, tokens, scores, figures, fed, turn."""
    load_kernels("embed_argmax").update_scores(*numbers)


def attend_past(
    layer: LayerWeights,
    sides: Float[Tensor, "rows sides"],
    number: int,
    buffers: AttentionBuffers,
    place: Counter,
    early: bool = False,
) -> Rows:
    """Self-attention: append the new keys and values, and attend to each row's past."""
    tile = load_kernels("tile").select_tile(buffers.past.shape[2], find_head_sizes(layer)[0])
    kernel = load_kernels("self_attention")
    return kernel.self_attend(sides, buffers.caches[number], buffers.past, place, layer.heads, layer.scale, tile, early)


def attend_source(layer: LayerWeights, query: Rows, number: int, buffers: AttentionBuffers, early: bool = False) -> Rows:
    """Cross-attention of each row."""
    source = buffers.sources[number]
    tile = load_kernels("tile").select_tile(buffers.keep.shape[1], find_head_sizes(layer)[1])
    kernel = load_kernels("cross_attention")
    return kernel.cross_attend(query, source.keys, source.values, buffers.keep, layer.cross_scale, tile, early)


def product(data: Rows, weights: Weights | None, norm: Norm | None = None, **options: Any) -> Float[Tensor, "rows columns"]:
    """Matrix product with fused norm, activation and sum."""
    file = load_kernels("matmul")
    before = None if norm is None else file.LayerNormArguments(norm.weight, norm.bias, norm.eps)
    return file.fused_matmul(data, weights, norm=before, **options)


@once
def load_kernels(name: str) -> Any:
    """Load a module of kernels; None without Triton."""
    return None if find_spec("triton") is None else import_module(f"regard.kernels.triton.decode_step.{name}")
