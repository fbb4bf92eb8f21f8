"""Multi-head attention, with grouped-query heads and a KV cache."""

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import run_request
from regard.attention.module import Attention, zero_padding
from regard.attention.scope import Offset
from regard.attention.score import adds_to_context, combine, compare, is_positional, prepare
from regard.attention.types import Attended, Encoded, Memory, Score

Parts = tuple[Float[Tensor, "batch time part"], ...]


class PackedProjection(NamedTuple):
    """Packed projection weights and biases of query, key and value, or of the last two."""

    weight: Float[Tensor, "rows source"]
    bias: Float[Tensor, " rows"] | None
    parts: int


class MultiHead(Attention):
    """Multi-head attention: each head attends by its own projections, and their contexts are merged.

        head_h = attend(W_h^Q query, W_h^K source, W_h^V source)
        context = W^O merge(head_1, ..., head_H)

    Vaswani et al. 2017, section 3.2.2, https://arxiv.org/abs/1706.03762
    Any score works in the heads, with one set of parameters each. `key_heads` below `heads` lets groups of query heads
    share keys and values (Ainslie et al. 2023, section 2.2, https://arxiv.org/abs/2305.13245), and key_heads=1 all of them
    (Shazeer 2019, section 3, https://arxiv.org/abs/1911.02150). `merge` joins the heads by "concat", "sum" or "mean";
    `output` projects the result back to the size of the query, or not. With sum_scores the heads' scores are summed before
    one normalisation, so that all heads have the same weights.

    Self-attention takes the query itself as memory; incremental decoding extends this KV cache by each token:

        memory = heads.extend(memory, token)          None to begin with
        attended = heads(token, memory)               the token is last, so the scope needs no offset
        attended, memory = heads.attend_self(token, memory)      both
    """

    packed: PackedProjection | None = None
    """Packed projections, set during an update (training/mixed_precision.py): one matrix product in place of several."""

    def __init__(
        self,
        query: int,
        key: int | None = None,
        value: int | None = None,
        *,
        heads: int = 8,
        key_heads: int | None = None,
        size: int | None = None,
        score: Any = "scaled_dot",
        normalise: Any = "softmax",
        scope: Any = "everywhere",
        merge: Literal["concat", "sum", "mean"] = "concat",
        output: bool = True,
        sum_scores: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        limit: int | None = None,
        impl: str = "auto",
    ):
        size = query if size is None else size
        key_heads = heads if key_heads is None else key_heads
        if heads < 1 or size % heads:
            raise ValueError(f"MultiHead needs a size that its heads divide, got size {size} and {heads} heads")
        if key_heads < 1 or heads % key_heads:
            raise ValueError(f"MultiHead needs key heads that divide its heads, got {key_heads} for {heads} heads")
        if merge not in ("concat", "sum", "mean"):
            raise ValueError(f"merge needs to be 'concat', 'sum' or 'mean', got {merge!r}")
        self.head = size // heads
        super().__init__(
            query,
            key,
            value,
            size=size,
            score="dot",
            normalise=normalise,
            scope=scope,
            bias=bias,
            dropout=dropout,
            impl=impl,
        )
        key = query if key is None else key
        value = key if value is None else value
        self.key = nn.Linear(key, key_heads * self.head, bias)
        self.value = nn.Linear(value, key_heads * self.head, bias)
        sizes = {} if limit is None else {"limit": limit}
        self.choose(score, normalise, scope, query=self.head, key=self.head, value=self.head, heads=heads, **sizes)
        if sum_scores:
            self.score = SummedHeads(self.score)
        self.how = merge
        merged = size if merge == "concat" else self.head
        self.output = nn.Linear(merged, query, bias) if output else nn.Identity()
        self.size = query if output else merged
        self.heads, self.key_heads = heads, key_heads

    def extend(self, memory: Memory | None, encoded: Encoded | Float[Tensor, "batch time key"]) -> Memory:
        """Append to the memory: the KV cache of incremental decoding."""
        more = self.remember(encoded, first=0 if memory is None else memory.keys.shape[2])
        if memory is None:
            return more
        if memory.documents is not None or more.documents is not None:
            raise ValueError(
                f"{type(self).__name__} extends a memory of one example a row, got packed rows; write them whole, in one go"
            )
        return Memory(
            torch.cat((memory.keys, more.keys), dim=2),
            torch.cat((memory.values, more.values), dim=2),
            _join_masks(memory, more),
        )

    def sides(self, data: Tensor, values: Tensor | None) -> tuple[Tensor, Tensor]:
        """Keys and values, by one matrix product where their projections are packed."""
        if values is not None or self.packed is None or self.packed.parts != 2:
            return super().sides(data, values)
        key, value = split_qkv(F.linear(data, self.packed.weight, self.packed.bias), 2)
        return key, value

    def attend_self(self, encoded: Encoded, memory: Memory | None = None, **options: Any) -> tuple[Attended, Memory]:
        """Self-attention over the data and the KV cache before it; returns the extended cache too."""
        packed = self.packed
        if encoded.documents is not None:
            options["documents"] = encoded.documents
        if packed is None or packed.parts != 3 or memory is not None:
            memory = self.extend(memory, encoded)
            return self(encoded.data, memory, **options), memory
        query, key, value = map(self.split, split_qkv(F.linear(zero_padding(encoded), packed.weight, packed.bias), 3))
        memory = Memory(prepare(self.score, key), value, encoded.keep, documents=encoded.documents)
        return self.project_output(run_request(self.build_request(query, memory, **options), self.impl)), memory

    def split(self, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch heads time head"]:
        """Split the last axis into heads."""
        batch, time, size = data.shape
        return data.view(batch, time, size // self.head, self.head).transpose(1, 2)

    def merge(self, context: Float[Tensor, "batch heads queries head"]) -> Float[Tensor, "batch queries size"]:
        """Join the heads."""
        if self.how == "concat":
            return context.transpose(1, 2).flatten(2)
        return context.sum(1) if self.how == "sum" else context.mean(1)

    @classmethod
    def from_torch(cls, other: nn.MultiheadAttention) -> "MultiHead":
        """Build from PyTorch's module with a copy of its parameters; ours is always batch first."""
        if other.bias_k is not None or other.add_zero_attn:
            raise ValueError("from_torch needs a module without add_bias_kv and add_zero_attn: no stage here adds keys")
        size, heads = other.embed_dim, other.num_heads
        module = cls(
            size,
            key=other.kdim,
            value=other.vdim,
            heads=heads,
            bias=other.in_proj_bias is not None,
            dropout=other.dropout,
        )
        if other.in_proj_weight is not None:
            weights = other.in_proj_weight.chunk(3)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        copies = dict(zip(("query.weight", "key.weight", "value.weight"), weights, strict=True))
        if other.in_proj_bias is not None:
            copies |= dict(zip(("query.bias", "key.bias", "value.bias"), other.in_proj_bias.chunk(3), strict=True))
        copies |= {f"output.{name}": parameter for name, parameter in other.out_proj.named_parameters()}
        module.to(other.out_proj.weight).load_state_dict(copies)
        return module.train(other.training)


class SummedHeads(nn.Module):
    """Score summed over the heads, so that one normalisation serves them all."""

    def __init__(self, inner: Score):
        super().__init__()
        self.inner = inner
        self.positional, self.adds = is_positional(inner), adds_to_context(inner)

    def prepare(
        self, key: Float[Tensor, "batch key_heads keys key"], first: int = 0
    ) -> Float[Tensor, "batch prepared_heads keys dim"]:
        """The key's side of the inner score."""
        return prepare(self.inner, key, first)

    def forward(
        self,
        query: Float[Tensor, "batch heads queries query"],
        prepared: Float[Tensor, "batch key_heads keys dim"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch 1 queries keys"]:
        return compare(self.inner, query, prepared, offset).sum(1, keepdim=True)

    def combine(
        self,
        weights: Float[Tensor, "batch 1 queries keys"],
        values: Float[Tensor, "batch value_heads keys value"],
        offset: Offset = 0,
    ) -> Float[Tensor, "batch heads queries value"]:
        """The context by the inner score's own `combine`."""
        return combine(self.inner, weights, values, offset)


def _join_masks(memory: Memory, more: Memory) -> Tensor | None:
    """The padding mask of both, or None where neither has one."""
    if memory.keep is None and more.keep is None:
        return None
    return torch.cat([_find_padding_mask(memory), _find_padding_mask(more)], dim=1)


def _find_padding_mask(memory: Memory) -> Tensor:
    if memory.keep is not None:
        return memory.keep
    return torch.ones_like(memory.values[:, 0, :, 0], dtype=torch.bool)


def split_qkv(whole: Float[Tensor, "batch time size"], count: int) -> Parts:
    """Split the last axis into `count` parts; the backward copies nothing where gradients are contiguous in memory."""
    return SplitQkv.apply(whole, count)  # type: ignore[no-untyped-call]


class SplitQkv(torch.autograd.Function):
    """torch.chunk with a backward that avoids a copy."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, count: int) -> tuple[Tensor, ...]:
        return whole.chunk(count, -1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        first, (batch, time, part) = gradients[0], gradients[0].shape
        if is_interleaved(gradients):
            return first.as_strided((batch, time, part * len(gradients)), first.stride()), None
        return torch.cat(gradients, dim=-1), None


def is_interleaved(parts: Parts) -> bool:
    """True if tensors of one shape are interleaved in memory, one row of each after the other."""
    first = parts[0]
    begin, width = first.data_ptr(), first.shape[-1]
    row = len(parts) * width
    strides = (first.shape[1] * row, row, 1)
    return all(
        part.stride() == strides and part.data_ptr() == begin + place * width * part.element_size()
        for place, part in enumerate(parts)
    ) and all(part.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() for part in parts)
