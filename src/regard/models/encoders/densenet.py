"""DenseNet encoder: each layer reads the outputs of all before it. Made for formulas, whose smallest parts are dots."""

import torch
from torch import nn
from torch.nn import functional as F

from regard.attention.masked_norm import build_norm as norm_of
from regard.attention.masked_pool import Image
from regard.attention.types import Encoded
from regard.data.image.batch import Images
from regard.models.encoders.feature_map import (
    FeatureMap,
    Mask,
    average_pool,
    build_convolution,
    downsample_mask,
    flatten_map,
    mask_pictures,
    to_channels_last,
    upsample,
)
from regard.models.encoders.visual_attention import build_visual_attention

BLOCKS = 3


class Dense(nn.Module):
    """DenseNet encoder: three dense blocks with the map halved between them; 16 x 16 pixels per position in the end.

        x_n = [x_{n-1}; f_n(x_{n-1})],    f(x) = conv₃(max(0, norm(conv₁ max(0, norm(x)))))

    Huang et al. 2017, DenseNet with bottlenecks and compression, https://arxiv.org/abs/1608.06993, in the shape that Zhang,
    Du and Dai 2018 recognise formulas with, https://arxiv.org/abs/1801.03530: 16 layers in each block, each of which adds
    `growth` channels, behind a 7 x 7 convolution and pooling. `layers` are those of a block. A last 1 x 1 convolution maps
    to `size` channels; `attention` names one inside the CNN, behind each block.

    `fine` adds their branch of twice the resolution: from before the last halving, half as many layers go on. Unlike the
    paper, whose decoder attends to both maps by two attentions, one attention reads both: each position of the fine map
    (stride 8) is concatenated with the coarse features of its region. Norms are as in the residual encoder.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        *,
        growth: int = 24,
        layers: int = 16,
        fine: bool = False,
        norm: str = "group",
        attention: str = "none",
        dropout: float = 0.0,
    ):
        super().__init__()
        if layers < 1 or growth < 1:
            raise ValueError(
                f"a densenet encoder needs 1 layer or more and a growth of 1 or more, got {layers} and {growth}"
            )
        self.channels, self.size, self.stride = channels, size, 8 if fine else 16
        width = 2 * growth
        self.stem, self.norm = build_convolution(channels, width, 7, 2), norm_of(norm, width)
        self.blocks, self.halvings, self.attentions = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for number in range(BLOCKS):
            if number:
                wide, width = width, width // 2
                self.halvings.append(Layer(wide, width, 1, norm, dropout))
            self.blocks.append(Block(width, growth, layers, norm, dropout))
            width += layers * growth
            if (visual_attention := build_visual_attention(attention, width)) is not None:
                self.attentions.append(visual_attention)
        more = max(layers // 2, 1)
        self.fine = Block(wide, growth, more, norm, dropout) if fine else None
        self.last = Layer(width + (wide + more * growth if fine else 0), size, 1, norm, 0.0)

    def forward(self, pictures: Images) -> Encoded:
        image, keep = mask_pictures(pictures, self.channels)
        keep = downsample_mask(keep)
        image = self.norm(to_channels_last(self.stem(image)), keep, rectify=True)
        image, keep = F.max_pool2d(image, 2, ceil_mode=True), downsample_mask(keep)  # zeros outside are never the largest
        for number, block in enumerate(self.blocks):
            if number:
                wide, known = image, keep
                image, keep = average_pool(self.halvings[number - 1](image, keep), keep), downsample_mask(keep)
            image = block(image, keep)
            if self.attentions:
                image = self.attentions[number](image, keep)
        if self.fine is not None:
            features = self.fine(wide, known)
            image, keep = torch.cat((features, upsample(image, *features.shape[2:])), dim=1), known
        return flatten_map(self.last(image, keep), keep)


class Layer(nn.Module):
    """Pre-activation layer: drop(conv(max(0, norm(x))))."""

    def __init__(self, before: int, after: int, kernel: int, norm: str, dropout: float):
        super().__init__()
        self.norm, self.convolution = norm_of(norm, before), build_convolution(before, after, kernel)
        self.drop = nn.Dropout(dropout)

    def forward(self, image: Image, keep: Mask) -> FeatureMap:
        return self.drop(self.convolution(self.norm(image, keep, rectify=True)))


class Block(nn.Module):
    """Dense block: each layer reads all before it through a bottleneck of 4 · growth channels, then convolves 3 x 3."""

    def __init__(self, before: int, growth: int, layers: int, norm: str, dropout: float):
        super().__init__()
        starts = range(before, before + layers * growth, growth)
        self.narrow = nn.ModuleList(Layer(start, 4 * growth, 1, norm, dropout) for start in starts)
        self.look = nn.ModuleList(Layer(4 * growth, growth, 3, norm, dropout) for _ in starts)

    def forward(self, image: Image, keep: Mask) -> FeatureMap:
        for narrow, look in zip(self.narrow, self.look, strict=True):
            image = torch.cat((image, look(narrow(image, keep), keep)), dim=1)
        return image
