"""Detection as the prediction of a set: a Transformer decoder whose queries each find one thing, or nothing."""

import math
from functools import partial
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.types import Attended, Encoded
from regard.data.image.batch import Images
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.detections import MIN_SIZE, Detections, NoisedObjects
from regard.models.encoders.coordinates2d import compute_centres, encode_coordinates
from regard.models.layers.transformer import Sublayers
from regard.models.readout import NO_WEIGHTS, ImageEncoder, Weights, collect_weights
from regard.tasks.detect.layers import Anchored, Sets

RARE = 0.01
"""Initial probability of each class."""
LARGEST = 4.0
"""The largest logarithm of a change of size: what one layer may multiply or divide by."""
NEVER = -30.0
"""The logit of every class for a query that no place of the map stands behind."""
SIDE = 0.1
"""The share of a picture that a thing is taken to be wide and high before anything is learned."""


class Proposals(NamedTuple):
    """Proposals of the places of the map."""

    logits: Float[Tensor, "batch places classes"]
    boxes: Float[Tensor, "batch places 4"]
    keep: Bool[Tensor, "batch places"]


class Detected(NamedTuple):
    """Classes and boxes after each layer; the last layer's are the answer, the others learn by the same loss."""

    logits: Float[Tensor, "layers batch queries classes"]
    boxes: Float[Tensor, "layers batch queries 4"]
    proposals: Proposals
    noised: tuple[Float[Tensor, "layers batch noised classes"], Float[Tensor, "layers batch noised 4"]] | None = None
    """Predictions for the noised objects."""
    weights: Weights = NO_WEIGHTS
    real: Bool[Tensor, "batch queries"] | None = None
    """Mask of the queries with a place of the map behind them: a small picture in a batch has fewer. None: all have one."""


class Head(nn.Module):
    """The class of a thing, and how far its box is from where it was thought to be.

        x' = x + Δx w,    w' = w exp(Δw),    and so for y and h

    in units of the box, so that a correction is the same for a large thing and a small one, anywhere: Girshick et al. 2014,
    https://arxiv.org/abs/1311.2524
    """

    def __init__(self, size: int, classes: int):
        super().__init__()
        self.label = nn.Linear(size, classes)
        nn.init.constant_(self.label.bias, -math.log((1 - RARE) / RARE))
        last = nn.Linear(size, 4)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.box = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU(), last)

    def forward(
        self,
        data: Float[Tensor, "batch places size"],
        boxes: Float[Tensor, "batch places 4"],
        where: Float[Tensor, "batch places size"] | None = None,
    ) -> tuple[Float[Tensor, "batch places classes"], Float[Tensor, "batch places 4"]]:
        """Logits, and boxes corrected with the knowledge of where they are."""
        change = self.box(data if where is None else data + where).float()
        centre, side = boxes[..., :2].float(), boxes[..., 2:].float()
        moved, grown = centre + change[..., :2] * side, side * change[..., 2:].clamp(-LARGEST, LARGEST).exp()
        return self.label(data), torch.cat((moved, grown), dim=-1)


class Detector(nn.Module):
    """Let every place of the map propose a thing, and a Transformer decoder make a set of the best proposals.

        proposals = head(map),    queries = the best of them, each standing at its box
        layer by layer:  x, box = layer(x, box, map),  head(x)

    Set prediction after Carion et al. 2020, https://arxiv.org/abs/2005.12872. Its queries, learned vectors that have to find
    out where to look, take hundreds of passes over a large set to learn that. What is here instead learns fast from few
    pictures: queries come from the map, as in the two-stage Zhu et al. 2020, https://arxiv.org/abs/2010.04159, so that one
    small head is trained by every place of every picture; they stand at boxes and look around them (models/pictures/
    anchored.py); and they may be taught by things given with noise, which need no matching (Li et al. 2022,
    https://arxiv.org/abs/2203.01305). Classes are judged each by itself (sigmoid): nothing is where all are low.
    Weights are called "decoder.n.cross": one row for each query.
    """

    def __init__(
        self,
        encoder: ImageEncoder,
        classes: int,
        size: int = 256,
        *,
        queries: int = 100,
        layers: int = 3,
        heads: int = 8,
        inner: int | None = None,
        attention: AttentionFactory | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        if size % 8:
            raise ValueError(f"a detector needs a size that is a multiple of 8, for the waves of four numbers, got {size}")
        if classes < 1 or queries < 1 or layers < 1:
            raise ValueError(
                f"a detector needs 1 class, query and layer or more, got {classes} classes, {queries} queries and "
                f"{layers} layers"
            )
        sublayers = Sublayers(size, heads, inner, drop_residual=dropout)
        self.encoder, self.size, self.classes, self.queries = encoder, size, classes, queries
        self.project = nn.Sequential(nn.Linear(encoder.size, size), nn.LayerNorm(size))
        self.propose = Head(size, classes)
        self.content = nn.Linear(size, size)
        self.named = nn.Embedding(classes, size)
        self.decoder = nn.ModuleList(Anchored(attention or partial(reading, heads), sublayers) for _ in range(layers))
        self.norm = sublayers.build_final_norm()
        self.heads = nn.ModuleList(Head(size, classes) for _ in range(layers))

    def forward(self, pictures: Images, *, noised: NoisedObjects | None = None, weights: bool = False) -> Detected:
        encoded = self.encoder(pictures)
        data = self.project(encoded.data)
        where = compute_centres(pictures, encoded, self.encoder.stride)
        keep = torch.ones_like(where[..., 0], dtype=torch.bool) if encoded.keep is None else encoded.keep
        logits, boxes = self.propose(data, torch.cat((where, torch.full_like(where, SIDE)), dim=-1))
        proposals = Proposals(logits, boxes, keep)
        source = Encoded(torch.cat((data, encode_coordinates(where, self.size).to(data.dtype)), dim=-1), keep)
        content, boxes, real = self.choose(data, proposals)
        count, sets = content.shape[1], Sets(real)
        if noised is not None and noised.keep.shape[1]:
            content = torch.cat((content, self.named(noised.labels).flatten(1, 2).to(content.dtype)), dim=1)
            boxes, sets = torch.cat((boxes, noised.boxes.flatten(1, 2)), dim=1), Sets(real, noised.keep)
        logits, boxes_by_layer, looks = self.decode(content, boxes, source, sets, weights)
        mine = logits[:, :, :count].masked_fill(~real[None, :, :, None], NEVER)
        rest = None if sets.objects is None else (logits[:, :, count:], boxes_by_layer[:, :, count:])
        return Detected(
            mine, boxes_by_layer[:, :, :count], proposals, rest, collect_weights(looks) if weights else NO_WEIGHTS, real
        )

    def choose(
        self, data: Float[Tensor, "batch places size"], proposals: Proposals
    ) -> tuple[Float[Tensor, "batch queries size"], Float[Tensor, "batch queries 4"], Bool[Tensor, "batch queries"]]:
        """Features of the most confident places of the map, their boxes, detached, and the mask of those that are real."""
        sure = proposals.logits.detach().max(-1).values.masked_fill(~proposals.keep, -math.inf)
        best = sure.topk(min(self.queries, sure.shape[1]), dim=1).indices[..., None]
        boxes = within(proposals.boxes.detach()).gather(1, best.expand(-1, -1, 4))
        content = self.content(data.gather(1, best.expand(-1, -1, self.size)))
        return content, boxes, proposals.keep.gather(1, best[..., 0])

    def decode(
        self,
        data: Float[Tensor, "batch all size"],
        boxes: Float[Tensor, "batch all 4"],
        source: Encoded,
        sets: Sets,
        weights: bool,
    ) -> tuple[Float[Tensor, "layers batch all classes"], Float[Tensor, "layers batch all 4"], dict[str, Attended]]:
        """Classes and boxes after each layer, and where it looked for them; a layer's box is where the next one stands."""
        logits, predicted, looks = list[Tensor](), list[Tensor](), dict[str, Attended]()
        for number, (layer, head) in enumerate(zip(self.decoder, self.heads, strict=True)):
            layer = cast(Anchored, layer)
            data, where, look = layer(data, boxes, layer.cross.remember(source), sets, weights)
            said, corrected = head(self.norm(data), boxes, where)
            boxes = within(corrected.detach())
            logits.append(said)
            predicted.append(corrected)
            if weights and look.weights is not None:
                looks[f"decoder.{number}.cross"] = look._replace(weights=look.weights[:, :, : sets.real.shape[1]])
        return torch.stack(logits), torch.stack(predicted), looks


def reading(heads: int, query: int, key: int) -> Attention | None:
    """Attention of so many heads: how the map is read unless told otherwise."""
    return build_attention("transformer", query, key, heads=heads)


def within(boxes: Float[Tensor, "*rows 4"]) -> Float[Tensor, "*rows 4"]:
    """Boxes whose middle is in the picture and whose sides are no longer than it, as something to stand at."""
    return torch.cat((boxes[..., :2].clamp(0.0, 1.0), boxes[..., 2:].clamp(MIN_SIZE, 1.0)), dim=-1)


def detections(detected: Detected, least: float = 0.05, most: int | None = None) -> list[Detections]:
    """Detections of the last layer in each picture, by confidence: queries with a class of probability `least` or more."""
    scores, labels = detected.logits[-1].float().sigmoid().max(-1)
    results = []
    for row in range(len(scores)):
        order = scores[row].argsort(descending=True, stable=True)
        order = order[scores[row][order] >= least][:most]
        results.append(Detections(labels[row][order], within(detected.boxes[-1, row][order]), scores[row][order], order))
    return results
