"""Recurrent model of visual attention (RAM): a picture is read through a sequence of small glimpses."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.image.batch import Images
from regard.models.encoders.coordinates2d import measure_sizes
from regard.models.readout import NO_WEIGHTS, Weights

Points = Float[Tensor, "batch 2"]
Squares = Float[Tensor, "batch values"]


class GlimpseOutput(NamedTuple):
    """Logits after the last glimpse, and the values that REINFORCE needs."""

    logits: Float[Tensor, "batch labels"]
    points: Float[Tensor, "batch steps 2"]
    """Location of each glimpse, x and y from -1 to 1."""
    log_probabilities: Float[Tensor, "batch steps"]
    """Log-probability of each location; 0 where none was sampled."""
    baselines: Float[Tensor, "batch steps"]
    """Expected reward before each glimpse."""
    weights: Weights = NO_WEIGHTS


def sense(pictures: Images, points: Points, side: int, scales: int) -> Float[Tensor, "batch squares side side"]:
    """Squares of side, 2 · side, 4 · side ... pixels around a point, all brought down to side x side by taking means.

    A point is (-1, -1) at the top left corner of its own picture and (1, 1) at the bottom right. Beyond the picture is 0.
    Between pixels it is linear in both directions. Mnih et al. 2014, https://arxiv.org/abs/1406.6247
    All of it is computed in float32: in bfloat16 a point would be off by pixels.
    """
    data, (height, width) = pictures.data.float(), pictures.data.shape[2:]
    whole = torch.stack((data.new_full((), width), data.new_full((), height)))  # a copy to a GPU would synchronise
    middle = (points.float() + 1) / 2 * measure_sizes(pictures)  # in pixels, from the left and the top
    patches = []
    for scale in range(scales):
        wide = side * 2**scale
        steps = torch.arange(wide, device=points.device, dtype=torch.float32) + 0.5 - wide / 2
        grid = torch.stack((steps[None].expand(wide, wide), steps[:, None].expand(wide, wide)), dim=-1)
        at = 2 * (middle[:, None, None] + grid) / whole - 1
        square = F.grid_sample(data, at, align_corners=False)
        patches.append(F.avg_pool2d(square, 2**scale))
    return torch.cat(patches, dim=1).to(pictures.data.dtype)


class Glimpses(nn.Module):
    """Recurrent attention model: takes glimpses one after another, choosing the location of each, then classifies.

        g_t = relu(W_1 relu(W_ρ ρ(x, l_t)) + W_2 relu(W_l l_t) + b)     the glimpse: what and where
        h_t = relu(W_h h_{t-1} + W_g g_t + b), or an LSTM               the core
        l_{t+1} ~ N(tanh(W_m h_t), σ²),    logits = W_a h_T

    Mnih et al. 2014, https://arxiv.org/abs/1406.6247
    σ is fixed. Locations are sampled in training and are the mean otherwise. The first is sampled around a learned point,
    which is initialised to the centre. The gradient of the classification does not reach the location network, nor the
    other way round: `tasks/classify/loss.py` has the loss of each.
    Weights are called "glimpses": the smallest square of each step, in equal shares, over the pixels of the picture.
    `standard` are the mean and the deviation of each channel, by which pictures are standardised.
    """

    mean: Tensor
    spread: Tensor

    def __init__(
        self,
        labels: int,
        channels: int = 1,
        *,
        side: int = 8,
        scales: int = 1,
        steps: int = 6,
        size: int = 256,
        deviation: float = 0.1,
        core: Literal["relu", "lstm"] = "relu",
        standard: tuple[Sequence[float], Sequence[float]] | None = None,
    ):
        super().__init__()
        for name, value in {"side": side, "scales": scales, "steps": steps, "deviation": deviation}.items():
            if value <= 0:
                raise ValueError(f"glimpses need a {name} above 0, got {value}")
        if core not in ("relu", "lstm"):
            raise ValueError(f"core needs to be 'relu' or 'lstm', got {core!r}")
        self.channels, self.side, self.scales, self.steps = channels, side, scales, steps
        self.size, self.deviation = size, deviation
        for name, values in zip(("mean", "spread"), standard or ((0.0,) * channels, (1.0,) * channels), strict=True):
            self.register_buffer(name, torch.tensor(values)[:, None, None])
        half = size // 2
        self.what = nn.Sequential(nn.Linear(channels * scales * side * side, half), nn.ReLU(), nn.Linear(half, size))
        self.where = nn.Sequential(nn.Linear(2, half), nn.ReLU(), nn.Linear(half, size))
        self.core: nn.Module = nn.LSTMCell(size, size) if core == "lstm" else nn.RNNCell(size, size, nonlinearity="relu")
        self.first = nn.Parameter(torch.zeros(2))
        self.next = nn.Sequential(nn.Linear(size, half), nn.ReLU(), nn.Linear(half, 2))
        self.baseline = nn.Linear(size, 1)
        self.output = nn.Linear(size, labels)

    def forward(
        self, pictures: Images, *, weights: bool = False, offsets: Float[Tensor, "steps 2"] | None = None
    ) -> GlimpseOutput:
        """`offsets` shift the location of each glimpse from its mean, in deviations; unused in training."""
        batch, channels = pictures.data.shape[:2]
        if channels != self.channels:
            raise ValueError(
                f"these glimpses were made for pictures of (batch, {self.channels}, height, width), got "
                f"{tuple(pictures.data.shape)}; make them with channels={channels}, or bring the pictures to {self.channels}"
            )
        pictures = pictures._replace(data=(pictures.data - self.mean) / self.spread)
        hidden = pictures.data.new_zeros(batch, self.size)
        state = (hidden, hidden)
        points, log_probabilities, baselines = list[Tensor](), list[Tensor](), list[Tensor]()
        for step in range(self.steps):
            known = state[0].detach()
            middle = torch.tanh((self.next(known) if step else self.first.expand(batch, 2)).float())
            point, log = self.sample_point(
                middle if offsets is None or self.training else middle + self.deviation * offsets[step]
            )
            points.append(point)
            log_probabilities.append(log)
            baselines.append(self.baseline(known)[:, 0])
            state = self.update(self.glimpse(pictures, point), state)
        locations = torch.stack(points, dim=1)
        maps = {"glimpses": self.cover(pictures, locations)} if weights else NO_WEIGHTS
        return GlimpseOutput(
            self.output(state[0]), locations, torch.stack(log_probabilities, 1), torch.stack(baselines, 1), maps
        )

    def glimpse(self, pictures: Images, point: Points) -> Float[Tensor, "batch size"]:
        """Glimpse network: the patch at a location and the location itself, combined."""
        patch = sense(pictures, point, self.side, self.scales).flatten(1)
        return F.relu(self.what(patch) + self.where(point.to(patch.dtype)))

    def update(self, glimpse: Float[Tensor, "batch size"], state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Core network: the state after one more glimpse."""
        if isinstance(self.core, nn.LSTMCell):
            hidden, cell = self.core(glimpse, state)
            return hidden, cell
        hidden = self.core(glimpse, state[0])
        return hidden, hidden

    def sample_point(self, middle: Points) -> tuple[Points, Float[Tensor, " batch"]]:
        """Sample a location around the mean, with its log-probability; the mean itself unless training."""
        if not self.training:
            return middle.detach().clamp(-1.0, 1.0), middle.new_zeros(middle.shape[0])
        point = (middle + self.deviation * torch.randn_like(middle)).detach()
        log = -((point - middle) / self.deviation).square() / 2 - math.log(self.deviation * math.sqrt(2 * math.pi))
        return point.clamp(-1.0, 1.0), log.sum(-1)

    def glimpses(self, pictures: Images) -> Float[Tensor, "batch steps scales 4"]:
        """Boxes of the glimpses by step and scale, as fractions of each picture."""
        points = self(pictures).points
        return self.boxes(pictures, points)

    def boxes(self, pictures: Images, points: Float[Tensor, "batch steps 2"]) -> Float[Tensor, "batch steps scales 4"]:
        """The squares around points as centre x, centre y, width, height."""
        batch, steps, _ = points.shape
        wide: Sequence[int] = [self.side * 2**scale for scale in range(self.scales)]
        squares = torch.tensor(wide, device=points.device, dtype=torch.float32)
        extent = squares[:, None] / measure_sizes(pictures)[:, None]  # batch scales 2
        centre = ((points.float() + 1) / 2)[:, :, None].expand(-1, -1, self.scales, -1)
        return torch.cat((centre, extent[:, None].expand(batch, steps, -1, -1)), dim=-1)

    def cover(self, pictures: Images, points: Float[Tensor, "batch steps 2"]) -> Float[Tensor, "batch 1 steps places"]:
        """The pixels of the smallest square of each step, in equal shares."""
        height, width = pictures.keep.shape[1:]
        middle = (points.float() + 1) / 2 * measure_sizes(pictures)[:, None]
        across, down = (
            (torch.arange(count, device=points.device)[None, None] + 0.5 - middle[..., axis, None]).abs() <= self.side / 2
            for axis, count in ((0, width), (1, height))
        )
        inside = (down[..., None] & across[..., None, :] & pictures.keep[:, None]).flatten(2).to(points.dtype)
        return (inside / inside.sum(-1, keepdim=True).clamp_min(1.0))[:, None]
