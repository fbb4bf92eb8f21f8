"""Vision Transformer (ViT): a Transformer over the patches of a picture."""

from itertools import pairwise
from typing import cast

import torch
from torch import nn
from torch.nn import functional as F

from regard.attention.masked_norm import GroupNorm
from regard.attention.masked_pool import Image, zero_padding
from regard.attention.types import Encoded
from regard.data.image.batch import Images
from regard.models.encoders.feature_map import (
    FeatureMap,
    Mask,
    SmallerMask,
    build_convolution,
    downsample_mask,
    flatten_map,
    mask_pictures,
)
from regard.models.encoders.positions2d import GridTable, build_grid_positions
from regard.models.encoders.transformer import Layer
from regard.models.layers.transformer import Sublayers


class Patches(nn.Module):
    """Vision Transformer: cuts a picture into patches, and each attends to all others.

        x = layer_N(... layer_1(E patch + PE))

    Dosovitskiy et al. 2021, ViT, https://arxiv.org/abs/2010.11929, with layers as in the Transformer's encoder. E is a
    convolution of `patch` x `patch` pixels, or with `convolutions` several of 3 x 3, each of which halves the map: Xiao et
    al. 2021, https://arxiv.org/abs/2106.14881, who find that it learns sooner and is less sensitive to its settings.
    `positions` are those of regard.models.encoders.positions2d. With `query`, the paper's class token, one learned vector
    attends to the patches in every layer; it is no position of the map, and its output is the final state in place of the
    mean. With `whole` there are so many such vectors, and they come first in the data, before the patches: a decoder may
    attend to them. `table` are the rows and columns of a map of fixed size, each position of which then has a learned
    vector. Layers of another `width` than `size` are followed by a projection.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        *,
        patch: int = 8,
        layers: int = 6,
        heads: int = 4,
        inner: int | None = None,
        activation: str = "gelu",
        self_attention: str = "scaled_dot",
        norm: str = "pre",
        positions: str = "sinusoidal",
        convolutions: bool = False,
        query: bool = False,
        whole: int = 0,
        table: tuple[int, int] | None = None,
        width: int | None = None,
        epsilon: float | None = None,
        dropout: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        if patch < 1:
            raise ValueError(f"patches need a side of 1 pixel or more, got {patch}")
        self.channels, self.size, self.stride = channels, size, patch
        width = width or size
        self.cut = Stem(channels, width, patch) if convolutions else PatchEmbedding(channels, width, patch)
        self.positions = build_grid_positions(positions, width) if table is None else GridTable(width, *table)
        shape = (whole, width) if whole else (width,)
        self.query = nn.Parameter(torch.randn(shape) * 0.02) if query or whole else None
        self.whole = whole
        self.drop = nn.Dropout(dropout)
        options = {"self_attention": self_attention, "norm": norm, "drop_residual": dropout}
        options |= {"drop_attention": drop_attention, "epsilon": epsilon}
        sublayers = Sublayers(width, heads, inner, activation, **options)  # type: ignore[arg-type]
        self.names = [str(number) for number in range(layers)]
        for name in self.names:
            self.add_module(name, initialise_layer(Layer(sublayers)))
        self.norm = sublayers.build_final_norm()
        self.fit = nn.Identity() if width == size else nn.Linear(width, size)

    def forward(self, pictures: Images) -> Encoded:
        image, keep = mask_pictures(pictures, self.channels)
        image, keep = self.cut(image, keep)
        image = image if self.positions is None else self.positions(image, keep)
        data, keep_tokens = zero_padding(image, keep).flatten(2).mT, keep.flatten(1)
        if self.query is not None:
            first = self.query.view(-1, data.shape[2]).expand(len(data), -1, -1)
            data = torch.cat((first.to(data.dtype), data), dim=1)
            keep_tokens = F.pad(keep_tokens, (first.shape[1], 0), value=True)
        data = self.drop(data)
        for name in self.names:
            data = cast(Layer, self.get_submodule(name))(data, keep_tokens)
        data = self.fit(self.norm(data))
        final, places = None if self.query is None else data[:, 0], data[:, keep_tokens.shape[1] - keep[0].numel() :]
        encoded = flatten_map(places.mT.unflatten(2, keep.shape[1:]), keep, final)
        return (
            encoded._replace(data=torch.cat((data[:, : self.whole], encoded.data), dim=1), keep=keep_tokens)
            if self.whole
            else encoded
        )


class PatchEmbedding(nn.Module):
    """Patch embedding E patch: one linear projection of all pixels of a square."""

    def __init__(self, channels: int, size: int, patch: int):
        super().__init__()
        self.convolution, self.patch = nn.Conv2d(channels, size, patch, patch), patch

    def forward(self, image: Image, keep: Mask) -> tuple[FeatureMap, SmallerMask]:
        height, width = image.shape[2:]
        return self.convolution(F.pad(image, (0, -width % self.patch, 0, -height % self.patch))), downsample_mask(
            keep, self.patch
        )


class Stem(nn.Module):
    """Convolutional stem: convolutions that halve the map down to one position per patch, then a 1 x 1 convolution."""

    def __init__(self, channels: int, size: int, patch: int):
        super().__init__()
        halvings = patch.bit_length() - 1
        if patch != 2**halvings or patch == 1 or size % patch:
            raise ValueError(
                f"convolutions need a patch that is a power of 2 from 2 on and divides the size, got patch {patch} and size "
                f"{size}; choose others, or convolutions=False"
            )
        widths = [channels, *(size * 2 // 2**number for number in range(halvings, 0, -1))]
        self.halving = nn.ModuleList(build_convolution(*pair, 3, 2) for pair in pairwise(widths))
        self.norms = nn.ModuleList(GroupNorm(width) for width in widths[1:])
        self.last = nn.Conv2d(size, size, 1)

    def forward(self, image: Image, keep: Mask) -> tuple[FeatureMap, SmallerMask]:
        for halving, norm in zip(self.halving, self.norms, strict=True):
            image, keep = halving(image), downsample_mask(keep)
            image = zero_padding(torch.relu(norm(image, keep)), keep)
        return self.last(image), keep


def initialise_layer(layer: Layer) -> Layer:
    """Xavier initialisation of a layer's matrices, as in a Transformer over tokens."""
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return layer
