"""End-to-end memory networks: several hops of attention over a memory, each with the output of the hop before."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.attend import align_offset, build_request, run_request
from regard.attention.module import Attention
from regard.attention.normalise.marginal import Marginal
from regard.attention.per_head import PerHead, project_heads
from regard.attention.scope import Offset, Scope
from regard.attention.scope.padding import Padding
from regard.attention.score import require_size
from regard.attention.types import Attended, Encoded, Memory, Sampled, State


class Hop(NamedTuple):
    """One hop: the question u, and the answer o with its weights."""

    question: Float[Tensor, "batch queries size"]
    answer: Attended


class MemoryNetwork(Attention):
    """Multi-hop attention: each hop adds its answer to the question of the next, so that facts can be chained.

        m_i = A_k x_i + T_A(i),    c_i = C_k x_i + T_C(i)                  the memory of hop k
        u_1 = B q,    o_k = Σ_i softmax_i(u_kᵀ m_i) c_i
        u_{k+1} = u_k + o_k        adjacent tying:   A_{k+1} = C_k
        u_{k+1} = H u_k + o_k      layerwise tying:  one A and one C for all hops

    Sukhbaatar et al. 2015, sections 2.1, 2.2 and 4.1, https://arxiv.org/abs/1503.08895
    `hops` is the number of hops, `tying` is "adjacent" or "layerwise".
    The context is u after the last hop, o + u, from which the paper predicts, and so more than weights @ values. Hops are
    the axis of heads: weights are (batch, hops, queries, keys). T, learned unless temporal=False, is indexed by age, so that
    0 is the latest position; no memory may be longer than `limit`. The paper's linear start is normalise="identity" at
    first. `sentences` makes a memory out of words. Unlike the paper, B is not tied to A, nor the output to C, since a query
    and an output have sizes of their own here. A, B and C are initialised so that inputs of variance one have scores of
    variance one.
    Cost: hops times that of Dot.
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        *,
        size: int | None = None,
        hops: int = 3,
        tying: str = "adjacent",
        temporal: bool = True,
        limit: int = 128,
        normalise: Any = "softmax",
        scope: Any = "everywhere",
        dropout: float = 0.0,
        impl: str = "auto",
    ):
        if hops < 1:
            raise ValueError(f"MemoryNetwork needs at least one hop, got {hops}")
        if tying not in ("adjacent", "layerwise"):
            raise ValueError(f"tying needs to be 'adjacent' or 'layerwise', got {tying!r}")
        super().__init__(query, key, score="dot", normalise=normalise, scope=scope, dropout=dropout, impl=impl)
        self.source, self.size = key or query, size or query
        self.hops = self.heads = hops
        self.limit = limit
        if isinstance(self.normalise, Marginal):
            raise ValueError(
                "MemoryNetwork adds what it reads to its question, so that no key has a context of its own to weigh; "
                "use softmax or hard"
            )
        sets = hops + 1 if tying == "adjacent" else 2
        bound = math.sqrt(3) * self.size**-0.25  # u and m of size^(-1/4) a number have products of variance one
        self.query = nn.Linear(query, self.size, bias=False)  # B
        nn.init.uniform_(self.query.weight, -bound / math.sqrt(query), bound / math.sqrt(query))
        # A is all but the last set, C all but the first
        self.embed = PerHead(self.source, self.size, sets, within=bound / math.sqrt(self.source))
        self.T = nn.Parameter(0.1 * torch.randn(sets, limit, self.size)) if temporal else None
        self.H = nn.Identity() if tying == "adjacent" else nn.Linear(self.size, self.size, bias=False)

    def steady(self) -> None:
        """Scale the learning rate of A, B and C by 1 / √d, for queries and keys of variance one."""
        self.query.pace = self.embed.pace = self.size**-0.5

    def remember(
        self, encoded: Encoded | Float[Tensor, "batch time key"], values: Tensor | None = None, first: int = 0
    ) -> Memory:
        """The keys and values of every hop, with hops along the axis of heads."""
        memory = super().remember(encoded, values, first)
        for data in memory[:2]:
            require_size("MemoryNetwork", "key", self.source, data.shape[-1])
        age = self.age(memory)
        keys, values = (
            self.embed_memory(memory.keys, slice(None, -1), age),
            self.embed_memory(memory.values, slice(1, None), age),
        )
        return Memory(keys, values, memory.keep, memory.grid, memory.documents)

    @property
    def unpackable(self) -> str | None:
        """The reason against packed rows: ages are counted along the row, and every hop attends by itself."""
        return "counts the age of a place along the row, whichever example it belongs to"

    def embed_memory(
        self, data: Float[Tensor, "batch 1 keys key"], sets: slice, age: Int[Tensor, "#batch keys"]
    ) -> Float[Tensor, "batch hops keys size"]:
        """Embedding A x + T_A or C x + T_C of every hop; hops that share a matrix share its product too."""
        embedded = project_heads(data, self.embed.weight[sets])
        if self.T is not None:
            embedded = embedded + self.T[sets][:, age].transpose(0, 1)
        return embedded.expand(-1, self.hops, -1, -1)

    def age(self, memory: Memory) -> Int[Tensor, "#batch keys"]:
        """The number of unpadded positions after each position."""
        places = memory.keys.shape[2]
        if self.T is not None and places > self.limit:
            raise ValueError(
                f"MemoryNetwork was made for at most {self.limit} places, got {places}; build it with limit={places}, "
                "or with temporal=False"
            )
        if memory.keep is None:
            return torch.arange(places - 1, -1, -1, device=memory.keys.device)[None]
        return (memory.keep.flip(1).cumsum(1).flip(1) - 1).clamp_min(0)

    def forward(
        self,
        query: Float[Tensor, "batch queries query"],
        memory: Memory,
        state: State = (),
        *,
        offset: Offset | None = None,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        documents: Int[Tensor, "batch queries"] | None = None,
    ) -> Attended:
        """Run all hops of attention."""
        self.check(query, memory, statistics, documents)
        hops = self.run_hops(query, memory, offset=offset, weights=weights, statistics=statistics)
        answers = [hop.answer for hop in hops]
        context = self.H(hops[-1].question) + answers[-1].context[:, 0]
        sampled = [answer.sampled for answer in answers if answer.sampled is not None]
        return Attended(
            self.mask_context(context, memory, offset),
            torch.cat([answer.weights for answer in answers if answer.weights is not None], dim=1) if weights else None,
            {name: torch.cat([answer.statistics[name] for answer in answers], dim=1) for name in answers[0].statistics},
            state,
            Sampled(*(torch.cat(samples, dim=1) for samples in zip(*sampled, strict=True))) if sampled else None,
        )

    def run_hops(self, query: Float[Tensor, "batch queries query"], memory: Memory, **options: Any) -> list[Hop]:
        """Every hop: score, normalise and combine, with the question updated by the hop before."""
        hops: list[Hop] = []
        question = self.query(query)
        for hop in range(self.hops):
            if hops:
                question = self.H(question) + hops[-1].answer.context[:, 0]
            request = build_request(
                question[:, None],
                Memory(memory.keys[:, hop : hop + 1], memory.values[:, hop : hop + 1]),
                score=self.score,
                normalise=self.normalise,
                scope=self.visible(memory),
                dropout=self.dropout if self.training else 0.0,
                **options,
            )
            answer = run_request(request, self.impl)
            hops.append(Hop(question, answer))
        return hops

    def visible(self, memory: Memory) -> Scope:
        """The scope together with the padding mask of the memory."""
        scope: Scope = self.scope if memory.keep is None else self.scope & Padding(memory.keep)
        return scope

    def mask_context(
        self, context: Float[Tensor, "batch queries size"], memory: Memory, offset: Offset | None
    ) -> Float[Tensor, "batch queries size"]:
        """Zero the context of a query with no visible key, which would otherwise be the question itself."""
        (batch, queries, _), keys = context.shape, memory.keys.shape[2]
        offset = align_offset(queries, keys) if offset is None else offset
        allowed = self.visible(memory).allowed(batch, 1, queries, keys, offset, context.device)
        if allowed is None:
            return context if keys else torch.zeros_like(context)
        return context.masked_fill(~allowed.any(-1)[:, 0, :, None], 0.0)


def sentences(
    words: Float[Tensor, "batch sentences words dim"], keep: Bool[Tensor, "batch sentences words"] | None = None
) -> Encoded:
    """Encode sentences as one vector each, the position-weighted sum of their word vectors.

        x_i = Σ_j l_j ∘ w_ij,    l_kj = (1 - j/J) - (k/d) (1 - 2j/J)

    with J words in the sentence and d numbers in a word, both counted from 1: position encoding, Sukhbaatar et al. 2015,
    section 4.1. `keep` is True where there is a word; a sentence without one is padding. Unlike the paper, l weighs a word
    before A embeds it.
    """
    keep = torch.ones_like(words[..., 0], dtype=torch.bool) if keep is None else keep
    dim = words.shape[-1]
    j = (keep.cumsum(-1) / keep.sum(-1, keepdim=True).clamp_min(1))[..., None].to(words.dtype)
    k = torch.arange(1, dim + 1, device=words.device, dtype=words.dtype) / dim
    weighted = words.masked_fill(~keep[..., None], 0.0) * ((1 - j) - k * (1 - 2 * j))
    return Encoded(weighted.sum(2), keep.any(-1))
