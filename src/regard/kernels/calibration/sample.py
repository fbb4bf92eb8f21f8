"""Random requests of attend(), over shapes, scores, normalisers, scopes, dtypes, gradients, dropout and statistics."""

import math
import random
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard import registry
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.scope import Scope
from regard.attention.scope.blocks import Blocks
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding

FAMILIES = {"product": 46, "additive": 20, "sparse": 12, "bias": 8, "features": 7, "other": 7}
"""Families of scores and normalisers, and how often each is sampled."""
SCOPES = {
    "everywhere": 30,
    "causal": 20,
    "padding": 26,
    "padding+causal": 8,
    "local": 6,
    "causal+local": 4,
    "document": 3,
    "blocks": 2,
    "dilated": 1,
}
PRODUCTS = {"scaled_dot": 70, "dot": 12, "bilinear": 6, "cosine": 6, "rotary": 6}
STATISTICS = (("entropy",), ("max", "argmax"), ("entropy", "mean_position"), ("received",), ("top_3",))
SIZES = (16, 24, 32, 40, 48, 64, 64, 64, 80, 96, 128, 128)
HEADS = (1, 2, 4, 8, 8, 12, 16)


class Limits(NamedTuple):
    """The largest requests: positions, pairs of a query and a key, and products of pairs with hidden units."""

    length: int
    batch: int
    pairs: int
    hidden: int


CPU_LIMITS = Limits(512, 64, 1 << 20, 1 << 23)
GPU_LIMITS = Limits(8192, 128, 1 << 28, 1 << 30)


class Sample(NamedTuple):
    """Sizes and stages of a request, without its tensors."""

    family: str
    score: str
    normalise: str
    scope: str
    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    dtype: torch.dtype
    gradient: str
    dropout: float
    weights: bool
    statistics: tuple[str, ...]
    window: int
    seed: int

    @property
    def name(self) -> str:
        """One line about the request."""
        extras = [self.gradient]
        extras += [f"dropout {self.dropout}"] if self.dropout else []
        extras += ["weights"] if self.weights else []
        extras += ["+".join(self.statistics)] if self.statistics else []
        shape = f"{self.batch}x{self.heads}x{self.queries}x{self.keys}x{self.size}"
        kind = str(self.dtype).removeprefix("torch.")
        return f"{self.score}/{self.normalise}/{self.scope} {shape} {kind} {' '.join(extras)}"


class Call(NamedTuple):
    """Arguments of attend() for a sample."""

    sides: tuple[Tensor, Tensor, Tensor]
    stages: dict[str, Any]
    learned: tuple[Tensor, ...]
    """Tensors that have a gradient."""
    gradient: Tensor | None
    """dC, or None for a forward."""


def sample_request(rng: random.Random, device: str, limits: Limits | None = None, family: str | None = None) -> Sample:
    """A random request."""
    limits = limits or (GPU_LIMITS if device == "cuda" else CPU_LIMITS)
    family = family or _choose(rng, FAMILIES)
    score, normalise = _sample_stages(rng, family)
    size = rng.choice(SIZES)
    while True:
        batch = _log_uniform(rng, 1, limits.batch)
        heads = rng.choice(HEADS) if family not in ("additive", "other") or rng.random() < 0.2 else 1
        queries = 1 if rng.random() < 0.08 else _log_uniform(rng, 2, limits.length)
        keys = queries if rng.random() < 0.5 and queries > 1 else _log_uniform(rng, 2, limits.length)
        pairs = batch * heads * queries * keys
        if pairs <= limits.pairs and pairs * size <= (
            limits.hidden if family in ("additive", "other") else limits.hidden * 16
        ):
            break
    scope = _choose(rng, SCOPES)
    if family == "features" and scope not in ("everywhere", "causal", "padding"):
        scope = "everywhere"
    asks = rng.random()
    return Sample(
        family=family,
        score=score,
        normalise=normalise,
        scope=scope,
        batch=batch,
        heads=heads,
        queries=queries,
        keys=keys,
        size=size,
        dtype=_choose(rng, {torch.bfloat16: 60, torch.float16: 15, torch.float32: 25})
        if device == "cuda"
        else torch.float32,
        gradient=_choose(rng, {"forward": 52, "training": 43, "query": 5}),
        dropout=0.1 if rng.random() < 0.1 else 0.0,
        weights=asks < 0.05,
        statistics=rng.choice(STATISTICS) if asks > 0.9 else (),
        window=_log_uniform(rng, 2, 256),
        seed=rng.randrange(1 << 30),
    )


def build_call(sample: Sample, device: str) -> Call:
    """The tensors and stages of a sample."""
    generator = torch.Generator().manual_seed(sample.seed)
    shape = (sample.batch, sample.heads)

    def normal(length: int) -> Tensor:  # heads beside each other in memory, as a projection leaves them
        seed = torch.randint(1 << 30, (1,), generator=generator).item()  # the seed of the device's own generator
        torch.manual_seed(seed)
        data = torch.randn(shape[0], length, shape[1], sample.size, device=device, dtype=sample.dtype)
        return data.transpose(1, 2)

    query, key, value = normal(sample.queries), normal(sample.keys), normal(sample.keys)
    score, normalise = _build_stage(sample.score, "score", sample), _build_stage(sample.normalise, "normalise", sample)
    modules = [stage.to(device, sample.dtype) for stage in (score, normalise) if isinstance(stage, nn.Module)]
    parameters = [parameter for module in modules for parameter in module.parameters()]
    learned: list[Tensor] = []
    if sample.gradient == "query":
        learned = [query]
    elif sample.gradient == "training":
        learned = [query, key, value, *parameters]
    for parameter in parameters:
        parameter.requires_grad_(False)
    for tensor in learned:
        tensor.requires_grad_()
    stages = {
        "score": score,
        "normalise": normalise,
        "scope": build_scope(sample, device),
        "dropout": sample.dropout,
        "weights": sample.weights,
        "statistics": sample.statistics,
    }
    return Call((query, key, value), stages, tuple(learned), torch.randn_like(query) if learned else None)


def build_scope(sample: Sample, device: str) -> Scope:
    """The scope of a sample: rows of random lengths, documents of random lengths."""
    rng = random.Random(sample.seed)
    lengths = torch.tensor([rng.randint(max(1, sample.keys // 4), sample.keys) for _ in range(sample.batch)])
    padding = Padding(Padding.from_lengths(lengths, sample.keys).keep.to(device))
    window = min(sample.window, max(1, sample.keys - 1))
    if sample.scope == "document":
        span = max(1, sample.keys // rng.randint(2, 8))
        places = torch.arange(max(sample.queries, sample.keys), device=device).expand(sample.batch, -1) // span
        return Document(places[:, : sample.keys].contiguous(), places.contiguous())
    scopes: dict[str, Scope] = {
        "everywhere": Everywhere(),
        "causal": Causal(),
        "padding": padding,
        "padding+causal": padding & Causal(),
        "local": Local(window),
        "causal+local": Causal() & Local(window),
        "blocks": Blocks(max(1, sample.keys // 4)),
        "dilated": Dilated(2),
    }
    return scopes[sample.scope]


def _sample_stages(rng: random.Random, family: str) -> tuple[str, str]:
    if family == "product":
        return _choose(rng, PRODUCTS), "softmax"
    if family == "additive":
        return rng.choice(("additive", "additive", "concat")), rng.choice(("softmax", "softmax", "softmax", "sparsemax"))
    if family == "sparse":
        return rng.choice(("scaled_dot", "scaled_dot", "dot")), rng.choice(("sparsemax", "entmax", "entmax"))
    if family == "bias":
        return rng.choice(("t5", "alibi")), "softmax"
    if family == "features":
        return "feature_map", "sum_to_one"
    return rng.choice(("distance", "softcap", "scaled_dot", "relative")), rng.choice(("sigmoid", "top_k", "softmax"))


def _build_stage(name: str, kind: str, sample: Sample) -> Any:
    plain = {"softmax": Softmax, "sparsemax": Sparsemax, "entmax": Entmax, "sum_to_one": SumToOne}
    if name in plain:
        return plain[name]()
    return registry.build(name, kind, query=sample.size, key=sample.size, value=sample.size, heads=sample.heads)


def _choose(rng: random.Random, shares: dict[Any, int]) -> Any:
    return rng.choices(list(shares), list(shares.values()))[0]


def _log_uniform(rng: random.Random, low: int, high: int) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))
