"""T5's relative position bias."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.scope import Offset
from regard.attention.score import compute_relative_positions, require_same_size
from regard.attention.score.scaled_dot import ScaledDot


class T5(nn.Module):
    """Dot product with a learned relative position bias, one for each bucket of distances and each head.

        score(q at i, k at j) = qᵀ k + b_h[bucket(j - i)]

    Raffel et al. 2020, section 2.1, https://arxiv.org/abs/1910.10683
    Half of the `buckets` hold one distance each; the others grow logarithmically up to `farthest`, and the last holds all
    beyond. Keys before and after the query have half of them each; with causal=True those before have them all, and those
    after count as distance 0. The product is unscaled, as in the authors' code, whose initialisation allows for that;
    `scale` multiplies it. Unlike the paper, each score has its own b, unless all layers share one score.
    Cost: time O(T S d), memory T S.
    """

    positional: ClassVar[bool] = True
    one_size: ClassVar[bool] = True
    edges: Int[Tensor, " edges"]

    def __init__(self, heads: int = 1, buckets: int = 32, farthest: int = 128, causal: bool = False, scale: float = 1.0):
        super().__init__()
        sides = 1 if causal else 2
        self.side = buckets // sides
        if buckets % sides or self.side < 2:
            raise ValueError(
                f"T5 needs an even number of buckets, 4 or more, or 2 or more of them with causal=True, got {buckets}"
            )
        if farthest <= self.side // 2:
            raise ValueError(
                f"T5 needs its farthest distance above {self.side // 2}, up to which {buckets} buckets hold one distance "
                f"each, got {farthest}"
            )
        self.buckets, self.farthest, self.causal, self.scale = buckets, farthest, causal, scale
        self.register_buffer("edges", torch.tensor(edges(self.side, farthest)), persistent=False)
        self.b = nn.Parameter(torch.empty(heads, buckets))
        nn.init.normal_(self.b, std=0.1)

    def prepare(self, key: Float[Tensor, "batch heads keys dim"], first: int = 0) -> Float[Tensor, "batch heads keys dim"]:
        return key

    def project(
        self, query: Float[Tensor, "batch heads queries dim"], offset: Offset = 0
    ) -> Float[Tensor, "batch heads queries dim"]:
        """scale q."""
        return query * self.scale

    def bucket(self, distance: Int[Tensor, "*pairs"]) -> Int[Tensor, "*pairs"]:
        """The bucket of each relative position key - query."""
        if self.causal:
            return torch.bucketize((-distance).clamp_min(0), self.edges, right=True)
        return torch.bucketize(distance.abs(), self.edges, right=True) + self.side * (distance > 0)

    def forward(
        self,
        query: Float[Tensor, "batch heads queries query"],
        prepared: Float[Tensor, "batch key_heads keys dim"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch scored_heads queries keys"]:
        require_same_size("T5", query.shape[-1], prepared.shape[-1])
        bucket = self.bucket(compute_relative_positions(query.shape[2], prepared.shape[2], offset, query.device))
        rows, heads, queries = bucket.shape[0], len(self.b), query.shape[2]  # len(bucket) would be constant in an export
        # each query gathers from a view of its own, so that its gradients are summed in parallel with those of others
        tables = self.b[:, None].expand(rows, heads, queries, self.buckets)
        bias = tables.gather(-1, bucket[:, None].expand(-1, heads, -1, -1))
        return ScaledDot(self.scale)(query, prepared) + bias

    def extra_repr(self) -> str:
        return f"buckets={self.buckets}, farthest={self.farthest}, causal={self.causal}"


def edges(buckets: int, farthest: int) -> list[int]:
    """The lower bounds of all buckets but the first, on one side of the query.

        edge(b) = b up to half of the buckets, then the first n with (n / half)^{rest} ≥ (farthest / half)^{b - half}

    which is where the logarithm of the paper's code passes b. Integers are exact, where logarithms round.
    """
    half = buckets // 2
    rest = buckets - half
    boundaries = list(range(1, half + 1))
    for step in range(1, rest):
        boundary = boundaries[-1]
        while boundary**rest * half**step < farthest**step * half**rest:
            boundary += 1
        boundaries.append(boundary)
    return boundaries
