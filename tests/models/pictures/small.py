"""A tiny encoder of pictures, and pictures of squares, discs and crosses for it."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from regard.attention.types import Encoded
from regard.data.image.batch import Images, collate_images
from regard.models.detections import Objects


class Tiny(nn.Module):
    """Three convolutions, each halving the map, deaf to what lies outside a picture."""

    def __init__(self, size=16, channels=3, depth=3):
        super().__init__()
        widths = [channels, *[size] * depth]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in pairwise(widths))
        self.size, self.stride = size, 2**depth

    def forward(self, pictures):
        data, keep = pictures
        data = data - 0.5
        for layer in self.layers:
            data = data * keep[:, None]
            keep = F.max_pool2d(keep.float()[:, None], 2, ceil_mode=True)[:, 0] > 0
            data = F.gelu(layer(data))
        rows, columns = data.shape[2:]
        data, keep = data.flatten(2).mT, keep.flatten(1)
        data = F.layer_norm(data, (self.size,)) * keep[..., None]
        mean = data.sum(1, keepdim=True) / keep.sum(1).clamp_min(1)[:, None, None]
        return Encoded(data, keep, (mean,), grid=(rows, columns))


def shape(kind, x, y, side, width=32, height=32):
    """A mask with a square, a disc or a cross of `side` pixels in it."""
    across, down = torch.arange(width)[None] + 0.5 - x, torch.arange(height)[:, None] + 0.5 - y
    half = side / 2
    if kind == 0:
        return (across.abs() <= half) & (down.abs() <= half)
    if kind == 1:
        return across**2 + down**2 <= half**2
    inside = (across.abs() <= half) & (down.abs() <= half)
    return inside & ((across.abs() <= half / 3) | (down.abs() <= half / 3))


COLOURS = torch.tensor([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2], [0.2, 0.2, 1.0]])


def scene(draw, most=3, width=32, height=32, sides=(8, 13)):
    """A picture of up to `most` things that do not touch, and what they are. The class is the shape; the colour is any."""
    picture, labels, boxes = torch.zeros(3, height, width), [], []
    for _ in range(int(draw.integers(1, most + 1))):
        for _ in range(20):
            side = float(draw.integers(*sides))
            x, y = draw.uniform(side / 2, width - side / 2), draw.uniform(side / 2, height - side / 2)
            if all(abs(x - a) > (side + s) / 2 or abs(y - b) > (side + s) / 2 for a, b, s in boxes):
                kind = int(draw.integers(3))
                picture[:, shape(kind, x, y, side, width, height)] = COLOURS[draw.integers(3)][:, None]
                labels.append(kind)
                boxes.append((x, y, side))
                break
    whole = torch.tensor([[x / width, y / height, side / width, side / height] for x, y, side in boxes], dtype=torch.float32)
    return picture, Objects(torch.tensor(labels), whole)


def single(draw, count, width=32, height=32):
    """`count` pictures of one thing each, and its shape and colour."""
    pictures, kinds, colours = [], draw.integers(0, 3, count), draw.integers(0, 3, count)
    for kind, colour in zip(kinds, colours, strict=True):
        picture, side = torch.zeros(3, height, width), float(draw.integers(9, 14))
        x, y = draw.uniform(side / 2, width - side / 2), draw.uniform(side / 2, height - side / 2)
        picture[:, shape(kind, x, y, side, width, height)] = COLOURS[colour][:, None]
        pictures.append(picture)
    return collate_images(pictures), torch.from_numpy(kinds), torch.from_numpy(colours)


def blank(batch=2, height=16, width=24):
    """Noise of one size."""
    return Images(torch.rand(batch, 3, height, width), torch.ones(batch, height, width, dtype=torch.bool))


def wider(pictures, more=8):
    """The same pictures with room on two sides, and nonsense in the room."""
    data = F.pad(pictures.data, (0, more, 0, more), value=0.7)
    return Images(data, F.pad(pictures.keep, (0, more, 0, more)))
