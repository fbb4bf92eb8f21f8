"""Folded cross-attention: projections multiplied into the keys and values of few and short sources."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Matrix = Float[Tensor, "out in"]
Bias = Float[Tensor, " out"]


class FoldableProjections(NamedTuple):
    """Projections to fold: W_Q and its bias or None, W_O and its bias, and the score's factor f."""

    query: tuple[Matrix, Bias] | None
    output: tuple[Matrix, Bias]
    factor: float = 1.0


def split_linear(layer: nn.Linear) -> tuple[Matrix, Bias]:
    """Weight and bias of a layer; zeros where it has no bias."""
    bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias.detach()
    return layer.weight.detach(), bias


class FoldedAttention:
    """Folded cross-attention over the sources of one batch.

        f (W_Q x + b_Q)_hᵀ k_hi  =  A_hiᵀ x + a_hi         A_hi = f W_Qhᵀ k_hi,       a_hi = f b_Qhᵀ k_hi
        W_O [Σ_i w_hi v_hi]_h + b_O  =  Σ_hi w_hi B_hi     B_hi = W_Oh v_hi + b_O / heads

    since the weights of a head sum to one. Where sources x heads x keys are fewer than the size of x, a step thus reads less
    memory than W_Q and W_O take, and needs fewer operations. It is folded once for each batch.
    """

    def __init__(
        self,
        sides: FoldableProjections,
        keys: Float[Tensor, "sources heads keys dim"],
        values: Float[Tensor, "sources heads keys value"],
        keep: Bool[Tensor, "sources keys"] | None,
    ):
        self.heads, self.keys = keys.shape[1:3]
        self.asks, self.bias = fold_query(sides, keys)
        if keep is not None:
            self.bias = self.bias.masked_fill(~keep[:, None], -math.inf)
        self.bias = self.bias.flatten(1)[:, None]
        matrix, bias = sides.output
        given = matrix.view(len(matrix), self.heads, -1).permute(1, 2, 0)  # heads value out
        self.gives = (values @ given).add_(bias / self.heads).flatten(1, 2)

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sources."""
        self.asks, self.bias, self.gives = self.asks[staying], self.bias[staying], self.gives[staying]

    def follow(self, parents: Int[Tensor, " rows"]) -> None:
        """Do nothing: no state is carried from step to step."""

    def weigh(self, query: Float[Tensor, "rows query"]) -> Float[Tensor, "sources width columns"]:
        """Attention weights of each row over each head's keys; the rows of a source share them."""
        scores = torch.baddbmm(self.bias, query.view(self.bias.shape[0], -1, query.shape[1]), self.asks)
        return scores.view(-1, self.heads, self.keys).softmax(-1).view(scores.shape)

    def __call__(self, query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows out"]:
        """Projected context of each row."""
        return (self.weigh(query) @ self.gives).flatten(0, 1)

    def onto(self, before: Float[Tensor, "rows out"], query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows out"]:
        """Add the projected context to `before`, in place."""
        before.view(self.bias.shape[0], -1, before.shape[1]).baddbmm_(self.weigh(query), self.gives)
        return before


def fold_query(
    sides: FoldableProjections, keys: Float[Tensor, "sources heads keys dim"]
) -> tuple[Float[Tensor, "sources query columns"], Float[Tensor, "sources heads keys"]]:
    """Folded query projections A and a."""
    if sides.query is None:
        return (sides.factor * keys).flatten(1, 2).mT.contiguous(), keys.new_zeros(keys.shape[:3])
    matrix, bias = (sides.factor * each for each in sides.query)
    heads, dim = keys.shape[1], keys.shape[3]
    return (keys @ matrix.view(heads, dim, -1)).flatten(1, 2).mT.contiguous(), (keys @ bias.view(heads, dim, 1))[..., 0]
