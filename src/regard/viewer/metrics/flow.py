"""Attention flow: the most that can pass from an input token to an output token when attention weights are capacities.

The layers are a network of pipes: token i of layer l is joined to token j of the layer below by a pipe as wide as A_l(i, j)
(with the residual connection, see `rollout.py`). The flow between an output and an input is the maximum flow between them.

Abnar and Zuidema 2020, section 3, "Attention flow", https://arxiv.org/abs/2005.00928. Their code then divides each row by
its sum; here the flows are as they are, since the sum says how much competes.

The flows are exact (Dinic 1970: paths of the fewest steps until none is left, then longer ones), which takes a maximum flow
per pair of tokens: for sentences, not for documents.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from regard.data.axis import Array
from regard.viewer.metrics.rollout import last, mixing, stack
from regard.viewer.trace import AttentionMap, Example, Trace

LIMIT = 64
"""Tokens of the longest layer above which flow refuses: the time grows with about the fourth power."""
CLOSED = 1e-12
"""A pipe with less room than this is full: what rounding leaves behind."""


def flow(layers: Sequence[Array], limit: int = LIMIT) -> Array:
    """The maximum flow between every output and every input, (queries, keys); layers as `rollout` takes them."""
    return pairs([mixing(layer) for layer in layers], limit)


def traced(example: Example, attention_map: AttentionMap, limit: int = LIMIT) -> Array:
    """Flow from the inputs up to a look of an example, (queries, keys)."""
    return pairs(stack(example, attention_map), limit)


def of(trace: Trace, group: tuple[str, str] | None = None, example: int = 0, limit: int = LIMIT) -> Array:
    """Flow from the inputs up to the highest attention of a group, (queries, keys)."""
    return traced(trace.example(example), last(trace, group, example), limit)


def pairs(mixed: Sequence[Array], limit: int = LIMIT) -> Array:
    """The maximum flow from every query of the topmost matrix to every key of the lowest."""
    if not mixed:
        raise ValueError("flow needs at least one layer, got none")
    longest = max(max(layer.shape) for layer in mixed)
    if longest > limit:
        raise ValueError(
            f"flow takes a maximum flow for every pair of tokens and stops at {limit} of them, got {longest}; "
            f"rollout has no limit, or give limit={longest} and time"
        )
    sizes = [mixed[0].shape[1], *(layer.shape[0] for layer in mixed)]
    pipes = _pipes(mixed, sizes)
    first = sum(sizes[:-1])
    flows = np.empty((sizes[-1], sizes[0]))
    for query in range(sizes[-1]):
        for key in range(sizes[0]):
            flows[query, key] = maximum(pipes.copy(), first + query, key)
    return flows


def maximum(room: Array, start: int, end: int) -> float:
    """The maximum flow from one node to another; `room`, (nodes, nodes), is what each pipe can take, and is used up."""
    total, most = 0.0, min(room[start].sum(), room[:, end].sum())
    while total < most - CLOSED:
        level = _levels(room, start, end)
        if level[end] < 0:
            break
        forward = np.where(level[None, :] == level[:, None] + 1, room, 0.0)
        total += _fill(room, forward, start, end)
    return total


def _pipes(mixed: Sequence[Array], sizes: list[int]) -> Array:
    """One square matrix of all capacities, inputs first; flow goes down, from a layer to the one below."""
    ends = np.cumsum([0, *sizes])
    pipes = np.zeros((ends[-1], ends[-1]))
    for number, layer in enumerate(mixed):
        pipes[ends[number + 1] : ends[number + 2], ends[number] : ends[number + 1]] = layer
    return pipes


def _levels(room: Array, start: int, end: int) -> Array:
    """Distance of each node from the start in open edges; -1 if it is unreachable, or behind the end."""
    level = np.full(len(room), -1)
    level[start] = 0
    front = np.array([start])
    while len(front) and level[end] < 0:
        reached = (room[front] > CLOSED).any(0) & (level < 0)
        level[reached] = level[front[0]] + 1
        front = np.flatnonzero(reached)
    return level


def _fill(room: Array, forward: Array, start: int, end: int) -> float:
    """Send flow along the pipes that lead one level on until none of these paths is open; widest pipe first."""
    total = 0.0
    path = [start]
    while path:
        here = path[-1]
        if here == end:
            widths = [forward.item(pipe) for pipe in pairwise(path)]  # plain numbers: six of them are no work for numpy
            amount = min(widths)
            for step, (above, below) in enumerate(pairwise(path)):
                forward[above, below] = widths[step] - amount
                room[above, below] -= amount
                room[below, above] += amount
            total += amount
            path = path[: widths.index(amount) + 1]  # from where a pipe is now full
            continue
        target = int(forward[here].argmax())
        if forward[here, target] > CLOSED:
            path.append(target)
        else:  # a dead end: nobody needs to come here again
            path.pop()
            forward[:, here] = 0
    return total
