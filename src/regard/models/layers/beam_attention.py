"""Cross-attention calls of a decoder: several beams per source, single steps, and statistics over all of them."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.module import Attention
from regard.attention.stateful import Stateful, concatenate_steps
from regard.attention.statistics import measure
from regard.attention.types import Attended, Memory, Sampled, State
from regard.tree import repeat

POSITIONAL = "goes by the positions of source and target, which in packed rows do not correspond"
"""Reason why a positional cross-attention cannot serve packed examples."""


def attend_beams(
    attention: Attention,
    query: Float[Tensor, "rows queries query"],
    memory: Memory,
    state: State = (),
    *,
    position: int | Int[Tensor, " rows"] = 0,
    weights: bool = False,
    statistics: tuple[str, ...] = (),
    documents: Int[Tensor, "rows queries"] | None = None,
) -> Attended:
    """Call an attention for rows = sources x beams, with one memory for all beams of a source.

    The beams become queries side by side. That takes an attention without positions, since all beams are at the same one;
    any other is called beam by beam. Only an attention with a state of its own gets a memory per row, unless it gathers the
    few keys that it needs. `position` is that of the first query. Statistics are about whole rows: with beams there are
    none. `documents` are the examples of the queries in packed rows: positions of target and source then do not correspond,
    so that the attention must use neither.
    """
    sources, rows = memory.values.shape[0], query.shape[0]
    if sources == 0 or rows % sources:
        raise ValueError(f"{rows} rows met a memory of {sources} sources; there must be as many rows for each source")
    beams = rows // sources
    blind = not attention.positional
    offset = 0 if blind else position
    if documents is not None:
        if reason := attention.unpackable or (None if blind else POSITIONAL):
            raise ValueError(f"{type(attention).__name__} cannot read a packed source: it {reason}; give each example a row")
        return attention(query, memory, state, weights=weights, statistics=statistics, documents=documents)
    if beams == 1:
        return attention(query, memory, state, offset=offset, weights=weights, statistics=statistics)
    alone = not blind and torch.compiler.is_exporting()  # beam by beam takes a number of beams, which a graph leaves open
    if alone or not is_stateless(state):
        shared = isinstance(attention, Stateful) and attention.gathers
        return attention(query, memory if shared else repeat(memory, beams), state, offset=offset, weights=weights)
    sides = torch.unflatten(query, 0, (sources, beams))
    if blind:
        return unfold_beams(attention(sides.flatten(1, 2), memory, offset=0, weights=weights), beams)
    places = torch.as_tensor(offset, device=query.device).expand(rows).view(sources, beams)
    steps = [attention(sides[:, beam], memory, offset=places[:, beam], weights=weights) for beam in range(beams)]
    return unfold_beams(concatenate_steps(steps), beams)


def is_stateless(state: State) -> bool:
    """Return True if a mechanism carries no state between steps."""
    return isinstance(state, tuple) and not state


def unfold_beams(attended: Attended, beams: int) -> Attended:
    """Reshape attention outputs from beams side by side in the query axis to rows of sources x beams."""

    def rows(tensor: Tensor) -> Tensor:
        return torch.unflatten(tensor, 2, (beams, -1)).movedim(2, 1).flatten(0, 1)

    context = torch.unflatten(attended.context, 1, (beams, -1)).flatten(0, 1)
    weights = None if attended.weights is None else rows(attended.weights)
    sampled = None if attended.sampled is None else Sampled(*map(rows, attended.sampled))
    return Attended(context, weights, sampled=sampled)


def measure_weights(
    attention: Attention,
    attended: Attended,
    keep: Bool[Tensor, "batch keys"] | None,
    *,
    weights: bool,
    statistics: tuple[str, ...],
) -> Attended:
    """Statistics of the weights of all steps; keeps the weights themselves only if `weights`."""
    of_beams = attended.weights
    if of_beams is None or not statistics:
        return attended if weights else attended._replace(weights=None)
    batch, heads, queries, keys = of_beams.shape
    allowed = attention.scope.allowed(batch, heads, queries, keys, 0, of_beams.device)
    if keep is not None:
        allowed = keep[:, None, None] if allowed is None else allowed & keep[:, None, None]
    return attended._replace(weights=of_beams if weights else None, statistics=measure(of_beams, allowed, statistics))
