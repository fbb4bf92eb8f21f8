"""One step of a decoder's layers by kernels in Triton: what `layer.py` computes, in fewer launches and fewer bytes.

A look writes what is new into the cache and reads each row's own past by a table, where a mask would have it multiplied by
all rows of its sentence. With few rows, sums, norms and max(0, x) are part of the products too: a layer is eight kernels.
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
from regard.decoding.engines.cuda.layer import Rows, join, think
from regard.decoding.engines.cuda.matrices import Matrices, Norm, Weights
from regard.decoding.engines.cuda.types import Counter
from regard.kernels.runtime import capability

DEVICES = ("cuda",)
"""Where Triton compiles for. Tests add the CPU, on which its interpreter runs."""
FEW, WIDEST = 8, 1024
"""Rows that a product with all around it takes, and the numbers of one."""
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LARGEST = 256
"""Numbers of a head, which a program holds in registers."""


class Seen(NamedTuple):
    """What the looks of a step read and write."""

    caches: Sequence[Float[Tensor, "sentences room width both"]]
    sources: Sequence[Memory]
    past: Int[Tensor, "sentences width room"]
    """Which row of its sentence wrote what a row sees at each place."""
    keep: Bool[Tensor, "sentences keys"]


def covers(layers: Sequence[Matrices], device: torch.device, dtype: torch.dtype) -> str | None:
    """None where these kernels compute what the layers do, else the reason why not."""
    if device.type not in DEVICES:
        return f"needs a GPU, got {device.type}"
    if triton("self_attention") is None:
        return "needs Triton, which is not installed; pip install triton"
    if dtype not in DTYPES:
        return f"needs float32, float16 or bfloat16, got {str(dtype).removeprefix('torch.')}"
    if (size := max(each for layer in layers for each in heads(layer))) > LARGEST:
        return f"needs heads of {LARGEST} numbers or fewer, got {size}"
    return capability.lacking(device, dtype)


def heads(layer: Matrices) -> tuple[int, int]:
    """Numbers of a head of the look at the past, and of the look at the source."""
    asked = layer.size if layer.asks is None else len(layer.asks[0])
    return layer.size // layer.heads, asked // layer.cross_heads


def runs(device: torch.device) -> bool:
    """Whether there are kernels in Triton there."""
    return device.type in DEVICES and triton("embed_argmax") is not None and capability.lacking(device) is None


def joins(layers: Sequence[Matrices], rows: int) -> bool:
    """Whether products take all around them in: for few rows, norms that come first, and max(0, x)."""
    return rows <= FEW and all(map(simple, layers))


def simple(layer: Matrices) -> bool:
    """Whether a layer has all matrices, norms that come first, and max(0, x)."""
    whole = layer.asks is not None and layer.cross_output is not None
    return layer.first and whole and isinstance(layer.bend, nn.ReLU) and layer.norms[0].shape[0] <= WIDEST


def follow(past: Int[Tensor, "sentences width room"], parents: Int[Tensor, "sentences width"], place: Counter) -> None:
    """Note whose past each row goes on from; one row alone has but its own."""
    if past.shape[1] > 1:
        triton("self_attention").follow_back(past, parents, place)


def stacked(layers: Sequence[Matrices], enters: Norm | None, data: Rows, seen: Seen, place: Counter) -> Rows:
    """All layers, from the lowest up, and the last norm."""
    both = data, data if enters is None else F.layer_norm(data, *enters)
    for number, layer in enumerate(layers):
        around, entered = both
        found = F.linear(look_back(layer, F.linear(entered, *layer.threefold), number, seen, place), *layer.own_output)
        around, entered = join(layer, 0, around, found)
        asked = entered if layer.asks is None else F.linear(entered, *layer.asks)
        found = look_across(layer, asked, number, seen)
        found = found if layer.cross_output is None else F.linear(found, *layer.cross_output)
        around, entered = join(layer, 1, around, found)
        both = join(layer, 2, around, think(layer, entered))
    return both[1]


def joined(layers: Sequence[Matrices], enters: Norm, data: Rows, seen: Seen, place: Counter) -> Rows:
    """The same for few rows: a norm is part of the product behind it, and a sum of the one before.

    On a GPU that can, each begins to read its matrix while the one before it ends.
    """
    norm = enters
    for number, layer in enumerate(layers):
        data, norm = joined_layer(layer, norm, data, number, seen, place), layer.norms[2]
    return F.layer_norm(data, *norm)


def joined_layer(layer: Matrices, norm: Norm, data: Rows, number: int, seen: Seen, place: Counter) -> Rows:
    """One of them, which `norm` enters; nothing but kernels of ours."""
    early = triton("tile").overlaps(data.device)
    found = look_back(layer, product(data, layer.threefold, norm, early=early), number, seen, place, early)
    data = product(found, layer.own_output, around=data, early=early)
    found = look_across(layer, product(data, layer.asks, layer.norms[0], early=early), number, seen, early)
    data = product(found, layer.cross_output, around=data, early=early)
    found = product(data, layer.inner, layer.norms[1], relu=True, early=early)
    return product(found, layer.outer, around=data, early=early)


def prepare(layers: Sequence[Matrices], enters: Norm | None, data: Rows, seen: Seen, place: Counter) -> None:
    """Launch what the first layer launches, as all do, so that it is compiled: see kernels/runtime/compile.py.

    What PyTorch does between is left out, for there is nothing yet to do it with.
    """
    layer = layers[0]
    if enters is not None and joins(layers, len(data)):
        joined_layer(layer, enters, data, 0, seen, place)
        return
    look_back(layer, data.new_empty(len(data), 3 * layer.size), 0, seen, place)
    asked = data if layer.asks is None else data.new_empty(len(data), len(layer.asks[0]))
    look_across(layer, asked, 0, seen)
    if add_norm.fits(data):
        join(layer, 0, data, torch.empty_like(data))


def embed(
    tokens: Int[Tensor, " rows"],
    table: Float[Tensor, "vocabulary size"],
    scale: float,
    places: Float[Tensor, "room size"],
    place: Counter,
) -> Rows:
    """The vectors of tokens at a place."""
    return triton("embed_argmax").embed(tokens, table, scale, places, place)


def note(*numbers: Tensor) -> None:
    """Write down what a turn of greedy search found, and feed it: values, tokens, scores, figures, fed, turn."""
    triton("embed_argmax").note(*numbers)


def look_back(
    layer: Matrices, sides: Float[Tensor, "rows sides"], number: int, seen: Seen, place: Counter, early: bool = False
) -> Rows:
    """Write the new keys and values behind the last, and let each row look at its past."""
    tile = triton("tile").tile(seen.past.shape[2], heads(layer)[0])
    kernel = triton("self_attention")
    return kernel.look_back(sides, seen.caches[number], seen.past, place, layer.heads, layer.scale, tile, early)


def look_across(layer: Matrices, asked: Rows, number: int, seen: Seen, early: bool = False) -> Rows:
    """What each row finds in its source."""
    source, tile = seen.sources[number], triton("tile").tile(seen.keep.shape[1], heads(layer)[1])
    kernel = triton("cross_attention")
    return kernel.look_across(asked, source.keys, source.values, seen.keep, layer.cross_scale, tile, early)


def product(data: Rows, weights: Weights | None, norm: Norm | None = None, **options: Any) -> Float[Tensor, "rows columns"]:
    """A product with all around it."""
    file = triton("product")
    before = None if norm is None else file.Before(norm.weight, norm.bias, norm.eps)
    return file.product(data, weights, norm=before, **options)


@once
def triton(name: str) -> Any:
    """A file of kernels; None where there is no Triton."""
    return None if find_spec("triton") is None else import_module(f"regard.kernels.triton.decode_step.{name}")
