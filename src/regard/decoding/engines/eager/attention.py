"""Cross-attention of the CPU engine: score, softmax and values without module calls."""

import math
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.kinds import is_builtin
from regard.attention.local import Windows
from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score import adds_to_context, is_positional
from regard.attention.score.additive import Additive
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory
from regard.decoding.engines.eager.linear import Affine, prepare_linear, prepare_matrix
from regard.models.layers.beam_attention import attend_beams
from regard.tree import select

Matrix = Float[Tensor, "out in"]
Bias = Float[Tensor, " out"]
SCORES = (Dot, ScaledDot, Bilinear, Additive)


def covers(attention: Attention) -> str | None:
    """Reason why `Look` cannot replace this attention, or None."""
    if not is_builtin(attention):
        return f"covers no component of a user, such as {type(attention).__name__}"
    if type(attention).forward not in (Attention.forward, Windows.forward) or getattr(attention, "centre", None) is not None:
        return f"reads no mechanism of its own way, such as {type(attention).__name__}"
    if type(attention.score) not in SCORES or is_positional(attention.score) or adds_to_context(attention.score):
        return (
            f"needs one of the scores {', '.join(score.__name__ for score in SCORES)}, got {type(attention.score).__name__}"
        )
    if type(attention.normalise) is not Softmax or type(attention.scope) is not Everywhere:
        return f"needs Softmax and Everywhere, got {type(attention.normalise).__name__} and {attention.scope}"
    return None


def prepare_projection(layer: nn.Module, precision: str) -> Affine | None:
    """Projection on one side of an attention, or None where there is none."""
    return prepare_linear(layer, precision) if isinstance(layer, nn.Linear) else None


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
        output_matrix = matrix.view(len(matrix), self.heads, -1).permute(1, 2, 0)  # heads value out
        self.gives = (values @ output_matrix).add_(bias / self.heads).flatten(1, 2)

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
    matrix, bias = (sides.factor * tensor for tensor in sides.query)
    heads, dim = keys.shape[1], keys.shape[3]
    return (keys @ matrix.view(heads, dim, -1)).flatten(1, 2).mT.contiguous(), (keys @ bias.view(heads, dim, 1))[..., 0]


class PreparedAttention:
    """Cross-attention with weights prepared once; `begin` starts a batch.

    context = merge(softmax(score(W^Q query, keys) + mask) values) W^O

    `behind` are the matrix and the bias of the only layer that reads the context, in the place of W^O where there is none.
    """

    def __init__(self, attention: Attention, precision: str, behind: tuple[Matrix, Bias] | None = None):
        self.attention, self.known = attention, covers(attention) is None
        self.query, self.output = (
            prepare_projection(layer, precision) if self.known else None for layer in (attention.query, attention.output)
        )
        self.behind = None if behind is None else prepare_matrix(*behind, precision)
        self.heads = attention.heads if isinstance(attention, MultiHead) else 1
        self.sides = find_foldable(attention, behind)

    def begin(self, memory: Memory) -> "BatchAttention | FoldedAttention | ModuleAttention":
        """Start a batch of sources; an attention that `covers` excludes is called as a module."""
        if not self.known:
            return ModuleAttention(self.attention, memory, self.behind)
        keys, values = (repeat_heads(tensor, self.heads) for tensor in memory[:2])
        if self.sides is not None and len(keys) * self.heads * keys.shape[2] <= len(self.sides.output[0]):
            score = self.attention.score
            factor = score.factor(keys) if isinstance(score, ScaledDot) else 1.0
            return FoldedAttention(self.sides._replace(factor=factor), keys, values, memory.keep)
        return BatchAttention(self, keys, values, memory.keep)


def find_foldable(attention: Attention, behind: tuple[Matrix, Bias] | None) -> FoldableProjections | None:
    """Projections that can be folded into keys and values; None if there are none, or the result would differ."""
    query, output = (
        split_linear(layer) if isinstance(layer, nn.Linear) else None for layer in (attention.query, attention.output)
    )
    product = isinstance(attention.score, Dot | ScaledDot | Bilinear)
    if not product or getattr(attention, "how", "concat") != "concat" or (output is None) == (behind is None):
        return None
    last = output or behind
    return None if last is None else FoldableProjections(query, last)


class BatchAttention:
    """Cross-attention over the sources of one batch."""

    def __init__(
        self,
        look: PreparedAttention,
        keys: Float[Tensor, "sources heads keys dim"],
        values: Float[Tensor, "sources heads keys value"],
        keep: Bool[Tensor, "sources keys"] | None,
    ):
        self.look, self.keys, self.values = look, keys.contiguous(), values.contiguous()
        self.mask = None if keep is None else torch.zeros(keep.shape).masked_fill_(~keep, -math.inf)[:, None, None]

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sources."""
        self.keys, self.values = self.keys[staying], self.values[staying]
        self.mask = None if self.mask is None else self.mask[staying]

    def follow(self, parents: Int[Tensor, " rows"]) -> None:
        """Do nothing: no state is carried from step to step."""

    def __call__(self, query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows context"]:
        """Context of each row; the rows of a source share its keys."""
        attention, sources = self.look.attention, len(self.keys)
        projected = query if self.look.query is None else self.look.query(query)
        projected = projected.view(sources, -1, self.look.heads, projected.shape[1] // self.look.heads).transpose(1, 2)
        scores = self.compare(projected)
        if self.mask is not None:
            scores += self.mask
        context = attention.merge(scores.softmax(-1) @ self.values).flatten(0, 1)
        return context if self.look.output is None else self.look.output(context)

    def onto(self, before: Float[Tensor, "rows out"], query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows out"]:
        """Add the projected context to `before`, in place."""
        context = self(query)
        return before.add_(context) if self.look.behind is None else self.look.behind.onto(before, context)

    def compare(self, query: Float[Tensor, "sources heads width dim"]) -> Float[Tensor, "sources heads width keys"]:
        """Score, without input checks."""
        score = self.look.attention.score
        if isinstance(score, ScaledDot):
            return (query @ self.keys.mT).mul_(score.factor(query))
        if isinstance(score, Dot | Bilinear):
            return query @ self.keys.mT
        scores: Tensor = score(query, self.keys)
        return scores


def has_empty_source(memory: Memory) -> bool:
    """Return True if some source is fully masked: its softmax would be NaN."""
    return memory.keep is not None and not bool(memory.keep.any(1).all())


class ModuleAttention:
    """Cross-attention module over the sources of one batch, in float32; `behind` is the projection after it."""

    def __init__(self, attention: Attention, memory: Memory, behind: Affine | None):
        self.attention, self.memory, self.behind = attention, memory, behind
        self.state, self.place = attention.start(memory), 0

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sources; the state follows with its rows."""
        self.memory = cast(Memory, select(self.memory, staying))

    def follow(self, parents: Int[Tensor, " rows"]) -> None:
        """Reorder the state by back-pointers."""
        self.state = select(self.state, parents)

    def __call__(self, query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows context"]:
        """Context of each row."""
        attended = attend_beams(self.attention, query[:, None], self.memory, self.state, position=self.place)
        self.state, self.place = attended.state, self.place + 1
        context: Tensor = attended.context[:, 0]
        return context

    def onto(self, before: Float[Tensor, "rows out"], query: Float[Tensor, "rows query"]) -> Float[Tensor, "rows out"]:
        """Add the projected context to `before`, in place."""
        context = self(query)
        return before.add_(context) if self.behind is None else self.behind.onto(before, context)
