"""Dot-product attention of one call: its tensors, its mask, and its weights for some of its queries.

    weights = softmax(cap(scale Q Kᵀ) + mask),    cap(s) = c tanh(s / c) where scores are capped

An attention sink adds one score to each row of the softmax and no value, so that rows sum to less than one.
Xiao et al. 2023, https://arxiv.org/abs/2309.17453
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.attention.normalise import widen
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.statistics import BY_KEY, measure, select_block
from regard.attention.types import Request
from regard.kernels import flash


@dataclass(frozen=True, eq=False)
class Product:
    """One call of dot-product attention, with keys and values of fewer heads where they are grouped.

    `mask` is boolean, True where a query may see a key, or is added to the scores. A `causal` product without one lets query
    i see the keys up to i. `bias` is added to the scores beside the mask, `sinks` has one score per head.
    """

    query: Float[Tensor, "batch heads queries dim"]
    key: Float[Tensor, "batch key_heads keys dim"]
    value: Float[Tensor, "batch key_heads keys value"]
    scale: float
    mask: Shaped[Tensor, "#batch #heads #queries keys"] | None = None
    causal: bool = False
    bias: Float[Tensor, "#batch #heads #queries keys"] | None = None
    softcap: float | None = None
    sinks: Float[Tensor, " heads"] | None = None
    dropout: float = 0.0

    @property
    def batch(self) -> int:
        return self.query.shape[0]

    @property
    def queries(self) -> int:
        return self.query.shape[2]

    @property
    def keys(self) -> int:
        return self.key.shape[2]

    def reach(self, end: int) -> int:
        """The number of keys that the queries before `end` may see at most."""
        return min(end, self.keys) if self.causal and self.mask is None else self.keys

    def allowed(self, first: int, end: int) -> Bool[Tensor, "#batch #heads #rows keys"] | None:
        """The mask of the queries from `first` to `end` over the keys within their reach; None where it hides nothing.

        An added mask hides a key where it is so low that its weight is zero: half of the lowest number, or less.
        """
        keys = self.reach(end)
        if self.mask is None:
            if not self.causal:
                return None
            rows = torch.arange(first, end, device=self.query.device)
            return (torch.arange(keys, device=self.query.device) <= rows[:, None])[None, None]
        part = _rows(self.mask, first, end)
        return part if part.dtype == torch.bool else part > torch.finfo(part.dtype).min / 2

    def scores(self, first: int, end: int) -> Float[Tensor, "batch heads rows keys"]:
        """Scores of the queries from `first` to `end`, in float32 at least, with bias and added mask and nothing hidden."""
        query, key = widen(self.query[:, :, first:end]), widen(self.key[:, :, : self.reach(end)])
        batch, heads, rows, dim = query.shape
        groups = key.shape[1]
        grouped = query.reshape(batch, groups, heads // groups, rows, dim)
        scores = ((grouped * self.scale) @ key[:, :, None].mT).reshape(batch, heads, rows, key.shape[2])
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        for addition in (self.bias, self.mask):
            if addition is not None and addition.dtype != torch.bool:
                scores = scores + widen(_rows(addition, first, end))
        return scores

    def weights(self, first: int, end: int) -> Float[Tensor, "batch heads rows keys"]:
        """Weights of the queries from `first` to `end` over the keys within their reach; all zero where one sees nothing."""
        scores, allowed = self.scores(first, end), self.allowed(first, end)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, float("-inf"))
        if self.sinks is not None:
            sinks = widen(self.sinks.view(1, -1, 1, 1)).expand(*scores.shape[:3], 1)
            return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]
        if allowed is None:
            return scores.softmax(-1)
        return scores.softmax(-1).masked_fill(~allowed.any(-1, keepdim=True), 0.0)

    def all_weights(self) -> Float[Tensor, "batch heads queries keys"]:
        """Weights of every query."""
        return self.weights(0, self.queries)

    def combine(self, weights: Float[Tensor, "batch heads rows keys"]) -> Float[Tensor, "batch heads rows value"]:
        """Weights times values, in the precision of the values."""
        batch, heads, rows, keys = weights.shape
        groups = self.value.shape[1]
        grouped = weights.to(self.value.dtype).reshape(batch, groups, heads // groups, rows, keys)
        return (grouped @ self.value[:, :, None, :keys]).reshape(batch, heads, rows, self.value.shape[-1])

    def blocks(self, most: int | None = None) -> list[tuple[int, int]]:
        """Ranges of queries whose weights are at most so many numbers, or one query."""
        most = select_block(self.query) if most is None else most
        rows = max(1, most // max(1, self.batch * self.query.shape[1] * self.keys))
        return [(first, min(first + rows, self.queries)) for first in range(0, self.queries, rows)]

    def plain_request(self, statistics: tuple[str, ...]) -> Request | None:
        """Request to kernels for this attention; None where it has a mask, a bias, capped scores or sinks."""
        if any(part is not None for part in (self.mask, self.bias, self.softcap, self.sinks)):
            return None
        scope = Causal() if self.causal else Everywhere()
        score = ScaledDot(self.scale)
        return Request(self.query, self.key, self.value, score, Softmax(), scope, 0.0, 0, False, statistics)

    @torch.no_grad()
    def statistics(
        self, names: tuple[str, ...], real: Bool[Tensor, "batch queries"] | None = None
    ) -> dict[str, Float[Tensor, "batch heads places"]]:
        """Statistics by the fused kernel that has them, or from the weights of a few queries at a time.

        Queries that are not `real` give nothing to any key.
        """
        request = self.plain_request(names)
        if real is None and request is not None and flash.covers(request) is None:
            return dict(flash.run(request).statistics)
        parts: list[dict[str, Tensor]] = []
        for first, end in self.blocks():
            weights, allowed = self.weights(first, end), self.allowed(first, end)
            if real is not None:
                rows = real[:, None, first:end, None]
                weights = weights.masked_fill(~rows, 0.0)
                allowed = rows.expand_as(weights) if allowed is None else allowed & rows
            values = measure(weights, allowed, names)
            missing = self.keys - weights.shape[-1]
            parts.append(
                {
                    name: torch.nn.functional.pad(value, (0, missing)) if name in BY_KEY else value
                    for name, value in values.items()
                }
            )
        return {
            name: torch.stack([part[name] for part in parts]).sum(0)
            if name in BY_KEY
            else torch.cat([part[name] for part in parts], dim=2)
            for name in parts[0]
        }


def _rows(mask: Tensor, first: int, end: int) -> Tensor:
    """The part of a mask for the queries from `first` to `end`; one row is for all of them."""
    return mask[:, :, first:end] if mask.shape[2] > 1 else mask
