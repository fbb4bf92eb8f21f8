"""Additive attention on a CPU, tiled for the cache: attend(score=Additive or Concat, normalise=any, scope=any).

The reference holds a tanh for every (batch, query, key, hidden). Here only one block of them exists at a time, with a
division in place of the tanh:

    tanh(q + k) = 1 - 2 r,    r = 1 / (1 + e^{2q} e^{2k}),    d tanh = 4 r (1 - r)

where the exponentials are computed once per query and once per key. Both stay within e^±80 in float32, so that their
product may overflow to infinity (r = 0, which is right) but is never 0 times infinity; a block with a larger q or k takes
the sigmoid of -2 (q + k), which is the same r.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attend import run_reference
from regard.attention.cost import Work, estimate_microseconds
from regard.attention.per_head import repeat_heads
from regard.attention.reference import find_normaliser
from regard.attention.score.additive import Additive
from regard.attention.score.concat import Concat
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload

BLOCK = 1 << 18
"""Elements of a block for each thread: 1 MiB in float32, about the size of a core's private cache."""

Tile = tuple[slice, slice, slice]


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    score = request.score
    if type(score) is not Additive and type(score) is not Concat:
        return f"needs Additive or Concat, got {type(score).__name__}"
    if isinstance(score, Concat) and not score.tanh:
        return "needs Concat with its tanh, got it without"
    if request.device != "cpu":
        return f"needs the CPU, got {request.device}"
    if torch.compiler.is_exporting():
        return "cannot be exported"
    return None


def count_work(request: Request) -> Work:
    """Divisions of all hidden units, blocks of the loop, and what the other stages do with the scores."""
    workload = measure_workload(request)
    rows, queries, keys = _choose_block_sizes(workload.batch, workload.queries, workload.keys, workload.size)
    blocks = -(-workload.batch // rows) * -(-workload.queries // queries) * -(-workload.keys // keys)
    scores = workload.pairs * max(4, workload.element)
    counts = {
        "blocks": float(workload.heads * blocks),
        "hidden": workload.pairs * workload.size / 1e6,
        "elements": workload.pairs / 1e6,
        "products": workload.pairs * workload.value / 1e6,
        "masked": workload.pairs * (workload.mask > 0) / 1e6,
        "mask_call": float(workload.mask > 0),
        "dropped": workload.pairs * workload.dropout / 1e6,
        "measured": len(workload.statistics) * workload.pairs / 1e6,
        "measure_call": float(len(workload.statistics)),
        "bytes": (workload.inputs + workload.output) / 1e6,
    }
    trained = workload.gradient != "forward"
    block = 4 * rows * queries * keys * workload.size
    memory = workload.output + block + scores * (4 if trained else 2) + 8 * trained * workload.inputs // workload.element
    return Work(f"{find_normaliser(request)}/{workload.precision}/{workload.gradient}", counts, memory)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("additive", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """The three stages with the scores computed in blocks."""
    score = request.score
    assert isinstance(score, Additive | Concat)
    query, keys = score.project(request.query), repeat_heads(request.keys, request.query.shape[1])
    return run_reference(request, compute_scores(query, keys, score.v.weight[:, 0]))


def compute_scores(
    query: Float[Tensor, "batch heads queries hidden"],
    key: Float[Tensor, "batch key_heads keys hidden"],
    v: Float[Tensor, "v_heads hidden"],
) -> Float[Tensor, "batch heads queries keys"]:
    """Additive scores vᵀ tanh(q + k) of all pairs."""
    batch, heads, _, hidden = query.shape
    wide = torch.promote_types(query.dtype, torch.float32)
    key = key.expand(batch, heads, *key.shape[2:])
    v = v.expand(heads, hidden)
    inputs = query.to(wide), key.to(wide), v.to(wide)
    if torch.compiler.is_compiling():
        return scores_operator(*inputs).to(query.dtype)
    return Scores.apply(*inputs).to(query.dtype)  # type: ignore[no-untyped-call]


def forward(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Forward of the scores, a block at a time."""
    all_scores = query.new_empty(*query.shape[:3], key.shape[2])
    for head in range(query.shape[1]):
        minus_two_v = -2 * v[head]
        for (rows, queries, keys), r in RationalBlocks(query[:, head], key[:, head]).tiles():
            all_scores[rows, head, queries, keys] = r @ minus_two_v
    return all_scores.add_(v.sum(-1)[:, None, None])


def backward(gradient: Tensor, query: Tensor, key: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Backward to q, k and v, a block at a time; dv sums over every pair, so it is accumulated in float64."""
    d_query, d_key, d_v = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(v, dtype=torch.float64)
    for head in range(query.shape[1]):
        for (rows, queries, keys), r in RationalBlocks(query[:, head], key[:, head]).tiles():
            ds = gradient[rows, head, queries, keys]
            ds_r = (ds[..., None, :] @ r).sum((0, 1, 2), dtype=torch.float64)
            d_v[head] += ds.sum(dtype=torch.float64) - 2 * ds_r
            r.addcmul_(r, r, value=-1).mul_(ds[..., None])  # r (1 - r), times dScores
            d_query[rows, head, queries] += r.sum(2)
            d_key[rows, head, keys] += r.sum(1)
    return d_query.mul_(4 * v[:, None]), d_key.mul_(4 * v[:, None]), d_v.to(v.dtype)


class Scores(torch.autograd.Function):
    """Autograd function of the scores for eager PyTorch, differentiable once; use impl="reference" for higher orders."""

    @staticmethod
    def forward(ctx, query, key, v):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(query, key, v)
        return forward(query, key, v)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return backward(gradient, *ctx.saved_tensors)


# A custom operator, opaque to torch.compile. Its first call imports the compiler, so eager does without.
scores_operator = torch.library.custom_op("regard::additive_scores", forward, mutates_args=())
scores_backward_operator = torch.library.custom_op("regard::additive_scores_backward", backward, mutates_args=())


@scores_operator.register_fake
def _(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    return query.new_empty(*query.shape[:3], key.shape[2])


@scores_backward_operator.register_fake
def _(gradient: Tensor, query: Tensor, key: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(v)


scores_operator.register_autograd(
    lambda ctx, gradient: scores_backward_operator(gradient, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


class RationalBlocks:
    """Blocks of r = (1 - tanh(q + k)) / 2 of one head, in one buffer that each block overwrites."""

    def __init__(self, query: Float[Tensor, "batch queries hidden"], key: Float[Tensor, "batch keys hidden"]):
        self.query, self.key = query, key
        self.limit = 0.45 * math.log(torch.finfo(query.dtype).max)
        self.safe = _is_within(query, self.limit) and _is_within(key, self.limit)
        clamped = (tensor if self.safe else tensor.clamp(-self.limit, self.limit) for tensor in (query, key))
        self.e_query, self.e_key = ((2 * tensor).exp_() for tensor in clamped)
        self.one = query.new_ones(())

    def tiles(self) -> Iterator[tuple[Tile, Float[Tensor, "rows some_queries some_keys hidden"]]]:
        """Iterate over the blocks of r, with the rows, queries and keys of each."""
        (batch, queries, hidden), keys = self.query.shape, self.key.shape[1]
        rows, some_queries, some_keys = _choose_block_sizes(batch, queries, keys, hidden)
        buffer = self.query.new_empty(rows * some_queries * some_keys * hidden)
        for b, left_rows, right_rows in _chunks(rows, 0, batch, self.e_query, self.e_key):
            for t, left in _chunks(some_queries, 1, queries, left_rows[:, :, None]):
                for s, right in _chunks(some_keys, 2, keys, right_rows[:, None]):
                    tile = slice(b, b + rows), slice(t, t + some_queries), slice(s, s + some_keys)
                    shape = *left.shape[:2], *right.shape[2:]
                    yield tile, self._fill(buffer[: math.prod(shape)].view(shape), left, right, tile)

    def _fill(self, r: Tensor, left: Tensor, right: Tensor, tile: Tile) -> Tensor:
        rows, queries, keys = tile
        if self.safe or (_is_within(self.query[rows, queries], self.limit) and _is_within(self.key[rows, keys], self.limit)):
            return torch.addcmul(self.one, left, right, out=r).reciprocal_()
        return torch.add(self.query[rows, queries, None], self.key[rows, None, keys], out=r).mul_(-2).sigmoid_()


def _chunks(size: int, dim: int, length: int, *tensors: Tensor) -> Iterator[tuple[Any, ...]]:
    """The start of each chunk and the chunk of each tensor, as views, which are cheaper than slices."""
    if length == 0:
        return iter(())
    return zip(range(0, length, size), *(torch.split(tensor, size, dim) for tensor in tensors), strict=True)


def _is_within(data: Tensor, limit: float) -> bool:
    if data.numel() == 0:
        return True
    low, high = data.aminmax()
    return bool(low >= -limit) and bool(high <= limit)


def _choose_block_sizes(batch: int, queries: int, keys: int, hidden: int) -> tuple[int, int, int]:
    """Rows, queries and keys of a block: some keys, then as many queries and rows as fit."""
    room = max(1, BLOCK * torch.get_num_threads() // hidden)
    some_keys = max(1, min(keys, 64, room))
    some_queries = max(1, min(queries, room // some_keys))
    whole = some_keys >= keys and some_queries >= queries
    rows = max(1, min(batch, room // (some_keys * some_queries))) if whole else 1
    return rows, some_queries, some_keys
