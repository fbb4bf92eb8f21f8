"""Attention model of routes: self-attention among points, and a pointer that names one after the other."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Offset, Scope
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.softcap import Softcap
from regard.models.encoders.transformer import Layer
from regard.models.layers.transformer import Sublayers
from regard.tasks.route.batch import Points


class Routes(NamedTuple):
    """Routes of a batch, several for each instance: the points in their order, and the log-probability of each choice."""

    order: Int[Tensor, "batch routes points"]
    log_probabilities: Float[Tensor, "batch routes points"]
    length: Float[Tensor, "batch routes"]
    pointer: Float[Tensor, "batch routes steps points"] | None = None
    """Weights of the pointer at each step, where they were asked for."""


class Unvisited(Scope):
    """Points that a route has not visited yet: a mask for each instance, route and point."""

    def __init__(self, mask: Bool[Tensor, "batch routes points"]):
        self.mask = mask

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.mask[b, q, k]

    def allowed(
        self, batch: int, heads: int, queries: int, keys: int, offset: Offset, device: torch.device
    ) -> Bool[Tensor, "#batch #heads #queries keys"]:
        """The mask, the same for all heads."""
        return self.mask[:, None]


class AttentionModel(nn.Module):
    """Encoder of points and a decoder whose attention weights are its policy.

        h = layers(W x)                                     points know of each other, whatever their order
        q = W_g mean(h) + W_f h_first + W_l h_last          of a route so far
        c = heads(q, h)                                     glimpse at the points that are left
        p(next) = softmax(cap tanh(cᵀ W_p h / (√d cap)))    over the points that are left

    Kool, van Hoof and Welling 2019, https://arxiv.org/abs/1803.08475; pointers: Bello et al. 2016,
    https://arxiv.org/abs/1611.09940; several starts: Kwon et al. 2020, https://arxiv.org/abs/2010.16011
    Unlike in Kool et al. norms are layer norms in front of each sublayer, and the tanh is that of Softcap. Routes of one
    instance are queries of one attention. The first point of a route is given, since a tour has no beginning.
    """

    def __init__(self, size: int = 64, *, layers: int = 2, heads: int = 4, inner: int = 128, cap: float = 10.0):
        super().__init__()
        if size % heads:
            raise ValueError(f"heads need to divide the hidden size, got {heads} heads and size {size}")
        self.heads = heads
        self.embed = nn.Linear(2, size)
        sublayers = Sublayers(size, heads, inner)
        self.encoder = nn.ModuleList(Layer(sublayers) for _ in range(layers))
        self.norm = sublayers.build_final_norm()
        self.graph, self.first, self.last = (nn.Linear(size, size, bias=False) for _ in range(3))
        self.key, self.value, self.glimpse, self.pointer = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.cap = Softcap(cap=cap)

    def forward(
        self,
        source: Points,
        starts: Int[Tensor, "batch routes"],
        *,
        sample: bool = False,
        generator: torch.Generator | None = None,
        weights: bool = False,
    ) -> Routes:
        """A route from each start: greedy, or sampled from the policy."""
        data = self.embed(source.data)
        for layer in self.encoder:
            data = layer(data, source.keep)
        data = self.norm(data)
        key, value, pointer = self.split(self.key(data)), self.split(self.value(data)), self.pointer(data)[:, None]
        fixed = self.graph(data.mean(1, keepdim=True)) + gather_rows(self.first(data), starts)
        last = self.last(data)
        current, orders, chances, looks = starts, [starts], [], []
        open_points = torch.ones(*starts.shape, data.shape[1], dtype=torch.bool, device=data.device)
        for _ in range(data.shape[1] - 1):
            open_points = open_points.scatter(2, current[..., None], False)
            query = fixed + gather_rows(last, current)
            scope = Unvisited(open_points)
            context = attend(
                self.split(query),
                key,
                value,
                score=ScaledDot(),
                normalise=Softmax(),
                scope=scope,
                offset=0,
                impl="reference",
            ).context
            merged = self.glimpse(context.transpose(1, 2).flatten(2))[:, None]
            policy = attend(
                merged, pointer, pointer, score=self.cap, normalise=Softmax(), scope=scope, offset=0, weights=True,
                impl="reference",
            ).weights  # fmt: skip
            assert policy is not None
            chance = torch.log(policy[:, 0].float().clamp_min(1e-12)).masked_fill(~open_points, -torch.inf)
            current = (chance + gumbel(chance, generator) if sample else chance).argmax(-1)
            chances.append(chance.gather(2, current[..., None])[..., 0])
            orders.append(current)
            if weights:
                looks.append(policy[:, 0])
        order = torch.stack(orders, dim=2)
        return Routes(
            order,
            torch.stack(chances, dim=2),
            measure_routes(source.data, order),
            torch.stack(looks, dim=2) if weights else None,
        )

    def split(self, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch heads time part"]:
        """Parts of the vectors, one for each head."""
        return data.view(*data.shape[:2], self.heads, -1).transpose(1, 2)


def gumbel(like: Float[Tensor, "*shape"], generator: torch.Generator | None) -> Float[Tensor, "*shape"]:
    """Gumbel noise: the largest of log p + noise is a sample of p."""
    uniform = torch.rand(like.shape, device=like.device, generator=generator).clamp(1e-9, 1 - 1e-7)
    return -torch.log(-torch.log(uniform))


def gather_rows(
    data: Float[Tensor, "batch points size"], places: Int[Tensor, "batch routes"]
) -> Float[Tensor, "batch routes size"]:
    """Vectors of some points."""
    return data.gather(1, places[..., None].expand(-1, -1, data.shape[2]))


def measure_routes(
    points: Float[Tensor, "batch points 2"], order: Int[Tensor, "batch routes points"]
) -> Float[Tensor, "batch routes"]:
    """Length of closed routes."""
    batch, routes, count = order.shape
    places = gather_rows(points, order.view(batch, routes * count)).view(batch, routes, count, 2)
    return (places - places.roll(-1, dims=2)).norm(dim=-1).sum(-1)


def spread_starts(batch: int, points: int, routes: int, device: torch.device) -> Int[Tensor, "batch routes"]:
    """Different starts for the routes of each instance, evenly spread over the numbers of its points."""
    return (torch.arange(min(routes, points), device=device) * points // min(routes, points)).expand(batch, -1)
