"""Encoders on a GPU, replayed as CUDA graphs, optionally in bf16."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batch import Padded
from regard.data.modality import Source
from regard.data.special_tokens import PAD
from regard.decoding.engines.cuda.buckets import ALIGNED, round_up
from regard.decoding.engines.cuda.graph import Pool, ReplayedGraph, create_pool
from regard.decoding.engines.eager.encoder import encode as on_cpu
from regard.decoding.engines.select import has_hooks
from regard.decoding.engines.version import ModelVersion
from regard.errors import ConfigError
from regard.models.seq2seq import Seq2Seq
from regard.tree import Tree, map_tree

MAX_SHAPES = 32
"""Maximum number of shapes in the cache."""
Encode = Callable[[Padded], Tree]
LOCK = threading.RLock()
"""Lock from the encoding of a batch to the end of its search: graphs and their buffers belong to one thread at a time."""


def lock_device(device: torch.device) -> AbstractContextManager[Any]:
    """Lock a GPU for one encoding and search."""
    return LOCK if device.type == "cuda" else nullcontext()


def encode(model: Any, source: Source, precision: str = "float32", compiled: bool = False) -> Tree:
    """Encode a source, equal to `model.encode`; faster for a trained model without hooks.

    In bf16 on a GPU it is the result of a copy of the model in that precision. The result is a buffer: the next call may
    overwrite it. `compiled` is for a CPU.
    """
    if not isinstance(source, Padded):
        if precision == "bf16":
            raise ConfigError("precision=bf16 does not cover models that read pictures; use precision=float32")
        return model.encode(source)
    if source.data.device.type != "cuda":
        return on_cpu(model, source, compiled)
    plain = source.documents is None and source.copies is None
    if not plain or not isinstance(model, Seq2Seq) or torch.is_autocast_enabled("cuda"):
        return model.encode(source)
    encoding = find_encoding(model, precision)
    return model.encode(source) if encoding is None else encoding(source)


def find_encoding(model: Seq2Seq, precision: str) -> "Encoding | None":
    """Encoding of a model, cached as long as its weights stay unchanged.

    None if it has hooks or is in training; with bf16, which the model itself does not have, that raises.
    """
    cached = ENCODINGS.get(model)
    if cached is not None and cached.precision == precision and cached.watched.unchanged and not model.training:
        return cached.encoding
    if model.training or any(map(has_hooks, model.modules())):
        if precision == "bf16":
            why = "it is in training" if model.training else "its modules have forward hooks"
            raise ConfigError(f"precision=bf16 does not cover this model: {why}; use precision=float32")
        return None
    half = precision == "bf16" and next(model.parameters()).dtype != torch.bfloat16
    taken = deepcopy(model).to(torch.bfloat16) if half else proxy(model)  # a strong reference would keep the model alive
    ENCODINGS[model] = cached = CachedEncoding(
        Encoding(lambda source: taken.encode(source), find_length_limit(model)), ModelVersion(model), precision
    )
    return cached.encoding


def find_length_limit(model: Seq2Seq) -> int | None:
    """Maximum source length of all parts of a model; None: unlimited."""
    parts = [module for name, module in model.named_modules() if not name.startswith("decoder.embedding.")]
    return min((part.limit for part in parts if isinstance(getattr(part, "limit", None), int)), default=None)


class Encoding:
    """Encoder with a CUDA graph per bucketed shape; sources are padded to at most `limit`, unless they are longer."""

    def __init__(self, encode: Encode, limit: int | None = None):
        self.encode, self.limit = encode, limit
        self.graphs: dict[tuple[int, int], EncoderGraph] = {}
        self.pool: Pool | None = None

    @torch.no_grad()
    def __call__(self, source: Padded) -> Tree:
        """Encode a batch; the result is valid until the next call."""
        count, time = source.data.shape
        if not source.data.numel():
            return self.encode(source)
        wide = round_up(time, ALIGNED)
        wide = wide if self.limit is None or wide <= self.limit else max(time, self.limit)
        shape, where = (round_up(count), wide), source.data.device
        if shape not in self.graphs:
            self.pool = self.pool or create_pool(where)
            if len(self.graphs) >= MAX_SHAPES:
                self.graphs.pop(next(iter(self.graphs)))
            self.graphs[shape] = EncoderGraph(self.encode, *shape, where, self.pool)
        graph = self.graphs[shape]
        graph.fill(source)
        graph.run()
        return graph.encoded if count == shape[0] else map_tree(lambda tensor: tensor[:count], graph.encoded)


class EncoderGraph:
    """CUDA graph of one shape, with its input and output buffers."""

    def __init__(self, encode: Encode, count: int, time: int, where: torch.device, memory: Pool | None):
        self.encode = encode
        keep = torch.zeros(count, time, dtype=torch.bool, device=where)
        self.source = Padded(torch.full((count, time), PAD, device=where), keep)
        self.encoded: Tree = None
        self.run = ReplayedGraph(self.work, where, memory)

    def work(self) -> None:
        """Encode the input buffer."""
        self.encoded = self.encode(self.source)

    def fill(self, source: Padded) -> None:
        """Copy a batch into the input buffer; spare rows repeat its first."""
        count, time = self.source.data.shape
        for buffer, tensor in zip(self.source[:2], source[:2], strict=True):
            short = time - tensor.shape[1]
            wider = F.pad(tensor, (0, short)) if short else tensor  # with PAD, which is 0, and False
            buffer.copy_(wider if len(tensor) == count else pad_with_first(wider, count))


class CachedEncoding(NamedTuple):
    """Encoding with the version of the model and the precision that it was made for."""

    encoding: Encoding
    watched: ModelVersion
    precision: str


ENCODINGS: WeakKeyDictionary[nn.Module, CachedEncoding] = WeakKeyDictionary()
"""Encoding of each model; weakly keyed by the model."""


def pad_with_first(rows: Tensor, count: int) -> Tensor:
    """Pad rows to a fixed count by repeating the first."""
    return torch.cat((rows, rows[:1].expand(count - len(rows), -1)))
