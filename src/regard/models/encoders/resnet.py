"""ResNet encoder: pictures in, a feature map out."""

from collections.abc import Iterable, Sequence

from torch import nn

from regard.attention.masked_norm import build_norm as norm_of
from regard.attention.masked_norm import rectify_masked
from regard.attention.masked_pool import Image
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
    to_channels_last,
)
from regard.models.encoders.visual_attention import build_visual_attention


class Residual(nn.Module):
    """ResNet encoder: stages of residual blocks, each with twice the channels and half the resolution of the one before.

        y = max(0, x + a(f(x))),    f(x) = norm(conv(max(0, norm(conv x))))

    He et al. 2016, its basic blocks, https://arxiv.org/abs/1512.03385; a is an attention inside the CNN by its name
    (regard.attention.visual), where Hu, Shen and Sun 2018, https://arxiv.org/abs/1709.01507, have theirs. `stages` are the
    numbers of blocks; the last stage has `size` channels. `stem` is the stride of the first convolution: 1, with a 3 x 3
    kernel, for small pictures, or 2, with 7 x 7. Unlike the paper no pooling follows it.

    Norms are over each picture by itself ("group"), so that neither padding nor the other pictures of a batch, whose number
    follows from their sizes, change the result, and inference equals training. "batch" is the paper's, over the kept
    positions of the batch.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        *,
        stages: Sequence[int] = (2, 2, 2, 2),
        stem: int = 2,
        norm: str = "group",
        attention: str = "none",
        dropout: float = 0.0,
    ):
        super().__init__()
        if stem not in (1, 2):
            raise ValueError(f"a resnet encoder needs a stem of stride 1 or 2, got {stem}")
        widths = list_channels(size, stages)
        self.channels, self.size, self.stride = channels, size, stem * 2 ** (len(stages) - 1)
        self.stem = build_convolution(channels, widths[0], 3 if stem == 1 else 7, stem)
        self.norm = norm_of(norm, widths[0])
        self.blocks = nn.ModuleList(
            Block(before, after, stride, norm, attention, dropout) for before, after, stride in plan_blocks(widths, stages)
        )

    def forward(self, pictures: Images) -> Encoded:
        image, keep = mask_pictures(pictures, self.channels)
        keep = downsample_mask(keep) if self.stem.stride[0] == 2 else keep
        image = self.norm(to_channels_last(self.stem(image)), keep, rectify=True)
        for block in self.blocks:
            image, keep = block(image, keep)
        return flatten_map(image, keep)


class Block(nn.Module):
    """Residual block of two convolutions; a stride of 2 halves the map, on the shortcut too."""

    def __init__(self, before: int, after: int, stride: int, norm: str, attention: str, dropout: float):
        super().__init__()
        self.first, self.second = build_convolution(before, after, 3, stride), build_convolution(after, after, 3)
        self.norm_first, self.norm_second = norm_of(norm, after), norm_of(norm, after)
        self.drop = nn.Dropout(dropout)
        self.attention = build_visual_attention(attention, after)
        changes = stride > 1 or before != after
        self.around = build_convolution(before, after, 1, stride) if changes else None
        self.norm_around = norm_of(norm, after) if changes else None
        self.halves = stride == 2

    def forward(self, image: Image, keep: Mask) -> tuple[FeatureMap, SmallerMask]:
        residual, keep = image, downsample_mask(keep) if self.halves else keep
        image = self.drop(self.norm_first(self.first(image), keep, rectify=True))
        if self.around is not None and self.norm_around is not None:
            residual = self.norm_around(self.around(residual), keep)
        if self.attention is None:
            return self.norm_second(self.second(image), keep, rectify=True, residual=residual), keep
        return rectify_masked(self.attention(self.norm_second(self.second(image), keep), keep), keep, residual), keep


def list_channels(size: int, stages: Sequence[int]) -> list[int]:
    """Number of channels of each stage: doubled from stage to stage, `size` in the last."""
    if not stages or min(stages) < 1:
        raise ValueError(f"a resnet encoder needs stages of 1 block or more, got {tuple(stages)}")
    halvings = 2 ** (len(stages) - 1)
    if size < halvings or size % halvings:
        raise ValueError(
            f"a resnet encoder of {len(stages)} stages needs a size that {halvings} divides, since channels double from "
            f"stage to stage, got {size}; choose {max(1, round(size / halvings)) * halvings}"
        )
    return [size * 2**number // halvings for number in range(len(stages))]


def plan_blocks(widths: Sequence[int], stages: Sequence[int]) -> Iterable[tuple[int, int, int]]:
    """Channels before and after each block, and its stride."""
    before = widths[0]
    for number, (width, blocks) in enumerate(zip(widths, stages, strict=True)):
        for block in range(blocks):
            yield before, width, 2 if number and not block else 1
            before = width
