"""Layers of a decoder whose queries stand somewhere: each object query has a box, and looks around it first."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.types import Attended, Encoded, Memory
from regard.models.attention_factory import AttentionFactory
from regard.models.encoders.coordinates2d import encode_coordinates
from regard.models.layers.transformer import Sublayers
from regard.models.readout import call_attention, require_attention

Data = Float[Tensor, "batch queries size"]
Boxes = Float[Tensor, "batch queries 4"]
NEAR = 12.0
"""Initial score of the place that a head looks at, above that of one far away."""
OUT = 0.8
"""Initial distance of the other heads' points from the middle of a box, as a share of the way to its side."""


class Sets(NamedTuple):
    """Groups of the queries: those that search come first, then groups of noised objects for denoising."""

    real: Bool[Tensor, "batch queries"]
    """False where a map has fewer places than there are queries."""
    objects: Bool[Tensor, "batch objects"] | None = None
    """Mask of the objects of a group that are no padding."""


class Asides(nn.Module):
    """Self-attention within sets of queries: those that search are one set, and each group of noised objects is another.

    Were they one set, whoever searches would hear from the groups what is there.
    """

    def __init__(self, sublayers: Sublayers):
        super().__init__()
        self.attention = sublayers.build_self_attention()

    def forward(self, data: Data, where: Data, sets: Sets) -> Data:
        """Self-attention of each query over its set."""
        count = sets.real.shape[1]
        first = self.hear(data[:, :count], where[:, :count], sets.real)
        if sets.objects is None:
            return first
        batch, objects = sets.objects.shape
        groups = (data.shape[1] - count) // objects
        noisy, positions = (tensor[:, count:].reshape(batch * groups, objects, -1) for tensor in (data, where))
        rest = self.hear(noisy, positions, sets.objects.repeat_interleave(groups, 0))
        return torch.cat((first, rest.view(batch, groups * objects, -1)), dim=1)

    def hear(self, data: Data, where: Data, keep: Bool[Tensor, "batch queries"]) -> Data:
        """Attend with content plus position as queries and keys, and content as values."""
        placed = data + where
        context: Tensor = self.attention(placed, self.attention.remember(Encoded(placed, keep), data)).context
        return context


class Anchored(nn.Module):
    """Hear the other queries, read the map around one's box, think, and correct the box.

        q = [x + MLP(waves(box)); waves(centre + aim_h(x) ∘ side / 2) of each head h],    k = [map; waves(place)]

    What a query looks for and where it stands are compared side by side, as in Meng et al. 2021,
    https://arxiv.org/abs/2108.06152, and it stands at a box that every layer corrects, as in Liu et al. 2022,
    https://arxiv.org/abs/2201.12329. Unlike there, every head has a point of the box to look at, which the query may move:
    one begins in the middle and the others around it, so that they see each side of a thing apart. Half of each head begins
    by comparing places alone (`stand`). Any attention may read the map; one without heads looks at the middle, and has to
    learn what it means to be near.
    """

    def __init__(self, attention: AttentionFactory, sublayers: Sublayers):
        super().__init__()
        size = sublayers.size
        self.asides, self.around_self = Asides(sublayers), sublayers.build_residual()
        self.cross = require_attention(attention(2 * size, 2 * size), "a detector")
        self.around_cross = sublayers.build_residual()
        self.fit = nn.Linear(self.cross.size, size)
        self.where = nn.Sequential(nn.Linear(2 * size, size), nn.ReLU(), nn.Linear(size, size))
        self.heads = self.cross.heads if isinstance(self.cross, MultiHead) and size % (2 * self.cross.heads) == 0 else 1
        self.aim = nn.Linear(size, 2 * self.heads)
        nn.init.zeros_(self.aim.weight)
        with torch.no_grad():
            self.aim.bias.copy_(ring(self.heads).flatten())
        self.feedforward, self.around_feedforward = sublayers.build_feedforward(), sublayers.build_residual()
        stand(self.cross, size)

    def forward(
        self, data: Data, boxes: Boxes, memory: Memory, sets: Sets, weights: bool = False
    ) -> tuple[Data, Data, Attended]:
        """Features of the queries, the embedding of their boxes, and their cross-attention."""
        where = self.where(encode_coordinates(boxes, 2 * data.shape[-1]).to(data.dtype))
        data = self.around_self.add(data, self.asides(self.around_self.normalise_input(data), where, sets))
        entered = self.around_cross.normalise_input(data)
        attended = call_attention(
            self.cross, torch.cat((entered + where, self.stands(entered, boxes)), dim=-1), memory, weights
        )
        data = self.around_cross.add(data, self.fit(attended.context))
        return (
            self.around_feedforward.add(data, self.feedforward(self.around_feedforward.normalise_input(data))),
            where,
            attended,
        )

    def stands(self, data: Data, boxes: Boxes) -> Data:
        """The waves of the points that the heads look at, dealt out to the heads as `stand` deals them."""
        batch, queries, size = data.shape
        aim = self.aim(data).float().view(batch, queries, self.heads, 2)
        points = boxes[..., None, :2] + aim * boxes[..., None, 2:] / 2
        waves = encode_coordinates(points, size).view(batch, queries, self.heads, size // (2 * self.heads), self.heads, 2)
        return waves.diagonal(dim1=2, dim2=4).movedim(-1, 3).reshape(batch, queries, size).to(data.dtype)


def ring(heads: int) -> Float[Tensor, "heads 2"]:
    """Initial points of the heads, in halves of a box: the middle, and points around it."""
    turns = torch.arange(heads - 1) * (2 * math.pi / max(heads - 1, 1))
    around = OUT * torch.stack((turns.cos(), turns.sin()), dim=-1)
    return torch.cat((torch.zeros(1, 2), around))


@torch.no_grad()
def stand(attention: Attention, size: int) -> None:
    """Let half of each head begin as the product of the waves of a query's centre and of a place, the other half as content.

    The waves are dealt out to the heads a sine with its cosine at a time, so that each has slow and fast ones of x and y.
    """
    if not isinstance(attention, MultiHead) or attention.head % 4 or size % attention.heads:
        return
    half, heads = attention.head // 2, attention.heads
    gain = (NEAR * attention.head**0.5 / (half / 2)) ** 0.5
    pairs = torch.arange(size).view(-1, 2)
    for projection in (attention.query, attention.key):
        assert isinstance(projection, nn.Linear)
        projection.weight.view(heads, attention.head, 2 * size)[:, :half, size:] = 0
        for head in range(heads):
            mine = pairs[head::heads].flatten()[:half]
            rows = head * attention.head + half + torch.arange(len(mine))
            projection.weight[rows] = 0
            projection.weight[rows, size + mine] = gain
            if projection.bias is not None:
                projection.bias[rows] = 0
