"""Attention of short sequences in one tile: attend(score=a product, normalise=Softmax(), scope=Padding, Causal or Document).

All queries and keys of a head fit into the registers of one program, as of sentences in translation. Nothing is saved for
the backward, which recomputes the weights, and there is no mask in memory. General kernels are tuned for long sequences,
and spend most of their time here on setup.
Times: benchmarks/transformer.py.
"""

import importlib.util

import torch
from torch import Tensor

from regard.attention.cost import Work, estimate_microseconds
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope, iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Request
from regard.attention.workload import measure_workload
from regard.kernels import flash
from regard.kernels.runtime import capability, tile_work
from regard.kernels.triton.flash.configs import round_up
from regard.kernels.triton.short.operator import attend_short

INSTALLED = importlib.util.find_spec("triton") is not None
DEVICES = ("cuda",)
"""Devices that Triton compiles for. Tests add the CPU, on which its interpreter runs."""
SCORES = (Dot, ScaledDot, Bilinear)
MAX_LENGTH, MAX_SIZE = 64, 128
"""The most queries or keys, and the largest head, of one program."""


def covers(request: Request) -> str | None:
    """None when this kernel equals the stages of the request, else the reason it does not."""
    if type(request.score) not in SCORES:
        return f"needs one of {', '.join(score.__name__ for score in SCORES)}, got {type(request.score).__name__}"
    normalise: object = request.normalise
    if type(normalise) is not Softmax:
        return f"needs Softmax, got {type(normalise).__name__}"
    if request.device not in DEVICES:  # a scope that no GPU covers is reported first
        return _covers_scope(request) or f"needs a GPU, got {request.device}"
    if not INSTALLED:
        return flash.MISSING
    if request.weights or request.statistics:
        return "never forms the weights, and they or their statistics are asked for"
    if request.dropout:
        return "never drops weights, and some are to be dropped"
    if torch.compiler.is_exporting():
        return "cannot be exported"
    return _covers_scope(request) or _covers_sizes(request)


def _covers_scope(request: Request) -> str | None:
    for part in iterate_parts(request.scope):
        if type(part) not in (Everywhere, Padding, Causal, Document):
            return f"needs Everywhere, Padding, Causal, Document or several of them joined by &, got {type(part).__name__}"
    if isinstance(request.offset, Tensor):
        return "needs one offset for all rows, got one for each"
    known = [part for part in iterate_parts(request.scope) if isinstance(part, Document)]
    last = request.offset + request.query.shape[2]
    if len(known) > 1:
        return f"needs one kind of documents, got {len(known)}"
    if known and (request.offset < 0 or last > _find_numbers(known[0]).shape[1]):
        return f"needs the documents of all queries, got {_find_numbers(known[0]).shape[1]} places and queries up to {last}"
    return None


def _find_numbers(document: Document) -> Tensor:
    """The document numbers of all query positions."""
    return document.keys if document.queries is None else document.queries


def _covers_sizes(request: Request) -> str | None:
    query, keys, values = request.query, request.keys, request.values
    longest, widest = max(query.shape[2], keys.shape[2]), max(query.shape[3], keys.shape[3], values.shape[3])
    if not query.shape[1] == keys.shape[1] == values.shape[1]:
        return f"needs as many key heads as heads, got {keys.shape[1]} for {query.shape[1]}"
    if query.shape[3] != keys.shape[3]:
        return f"needs queries and keys of one size, got {query.shape[3]} and {keys.shape[3]}"
    if longest > MAX_LENGTH or widest > MAX_SIZE:
        return f"needs at most {MAX_LENGTH} queries and keys and heads of at most {MAX_SIZE}, got {longest} and {widest}"
    if not (query.dtype == keys.dtype == values.dtype) or query.dtype not in flash.DTYPES:
        kinds = ", ".join(str(tensor.dtype).removeprefix("torch.") for tensor in (query, keys, values))
        return f"needs queries, keys and values in one of float32, float16 and bfloat16, got {kinds}"
    if 0 in (*query.shape, *keys.shape, *values.shape):
        return "needs a query and a key, and one of them is missing"
    return capability.find_obstacle(query.device, query.dtype) or _covers_room(request)


def _covers_room(request: Request) -> str | None:
    least, most = estimate_shared_memory(request), capability.find_shared_memory(request.query.device)
    if least > most:
        return f"needs {least >> 10} KiB of shared memory for all queries and keys of a head, got a GPU with {most >> 10}"
    return None


def estimate_shared_memory(request: Request) -> int:
    """Bytes of shared memory: q, k and v, and in the backward dO and the weights.

    Measured by benchmarks/room.py, which compiles for GPUs that are not present.
    """
    query, keys, values = request.query, request.keys, request.values
    sizes = query.shape[2], keys.shape[2], keys.shape[3], values.shape[3]
    tall, wide, dims, value_size = map(round_up, sizes)
    backward_elements = tall * value_size + tall * wide if torch.is_grad_enabled() else 0
    return ((tall + wide) * dims + wide * value_size + backward_elements) * query.element_size()


def suits_graph(request: Request) -> bool:
    """True for several queries: for one most of a program would be idle."""
    return request.query.shape[2] > 1


def ignores_padding(request: Request) -> bool:
    """True: keys and values of padding are not read."""
    return True


def count_work(request: Request) -> Work:
    """One tile for each head."""
    workload = measure_workload(request)
    rows, columns = tile_work.round_to_power(workload.queries), tile_work.round_to_power(workload.keys)
    counts = dict(tile_work.count_tiles(workload, rows, columns))
    counts["documents"] = float(workload.rest)
    return Work(f"{workload.precision}/{workload.gradient}", counts, workload.output)


def cost(request: Request) -> float:
    """Estimated microseconds of this kernel, and of its backward where there is one."""
    return estimate_microseconds("short", count_work(request), request.query.device)


def run(request: Request) -> Attended:
    """Context, one program for each head of each row."""
    batch, heads, queries, _ = request.query.shape
    request.scope.check(batch, heads, queries, request.keys.shape[2])
    known: list[Scope] = list(iterate_parts(request.scope))
    scale = request.score.factor(request.query) if isinstance(request.score, ScaledDot) else 1.0
    causal, offset = any(isinstance(part, Causal) for part in known), request.offset
    assert not isinstance(offset, Tensor)
    document = next((part for part in known if isinstance(part, Document)), None)
    query_documents, key_documents = None, None
    if document is not None:
        query_documents = _find_numbers(document)[:, offset : offset + queries]
        key_documents = document.keys[:, : request.keys.shape[2]]
    scope = flash.merge_padding(known), query_documents, key_documents
    return Attended(attend_short(request.query, request.keys, request.values, *scope, causal, offset, scale))
