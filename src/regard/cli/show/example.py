"""Worked example: a stage or mechanism applied to the sentence "Tom chases Jerry"."""

import dataclasses
import inspect
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard import registry
from regard.attention import Attention, attend
from regard.attention.local import Windows, count_keys
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.mechanisms.forward import Forward, PathNormaliser
from regard.attention.mechanisms.memory_network import MemoryNetwork
from regard.attention.mechanisms.mocha import ChunkNormaliser, Mocha
from regard.attention.mechanisms.monotonic import Monotonic
from regard.attention.normalise.softmax import Softmax
from regard.attention.per_head import repeat_heads
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score import combine, compare, is_positional, prepare
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory, Request

SOURCE, TARGET = ("Tom", "chases", "Jerry"), ("汤姆", "追逐", "杰瑞")
KEY = torch.tensor([[1.0, 0.1, 1.2, 0.0], [0.1, 1.6, 0.2, 0.2], [1.0, 0.0, 0.1, 1.3]])
QUERY = torch.tensor([[1.0, 0.0, 1.4, 0.1], [0.2, 1.7, 0.3, 0.3], [1.1, 0.1, 0.1, 1.2]])
VALUE = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])
"""Keys and queries of the words, with features (person, action, cat, mouse), and their values."""

BATCH = 2
"""The sentence stands in the batch twice and the last row is shown: padding hides nothing in the first."""

DEFAULTS: dict[str, Any] = {"dropout": 0.0, "offset": 0, "weights": False, "statistics": ()}


class Example(NamedTuple):
    """Inputs of the worked example for one component. `key` is what its score prepares; `module` is set for a mechanism.

    `coverage_keys` are the keys of each query, where a mechanism adds the coverage of earlier steps to them.
    """

    request: Request
    key: Tensor
    module: Attention | None = None
    coverage_keys: tuple[Tensor, ...] = ()


class Stages(NamedTuple):
    """Outputs of each stage for the row that is shown, by head and query."""

    scores: Tensor
    allowed: Tensor
    weights: Tensor
    context: Tensor

    @property
    def pair(self) -> tuple[int, int]:
        """Query and key of the arithmetic: a query that the scope restricts, if there is one, and its largest weight."""
        visible = self.allowed[0].sum(-1).tolist()
        row = next((row for row, many in enumerate(visible) if 1 < many < len(SOURCE)), 0)
        return row, int(self.weights[0, row].argmax())


class PositionalStages(Stages):
    """Stages of a positional score."""

    @property
    def pair(self) -> tuple[int, int]:
        """The last query, and its largest weight among earlier words: at distance 0 the position term vanishes."""
        return len(TARGET) - 1, int(self.weights[0, -1, :-1].argmax())


class StatefulStages(Stages):
    """Stages of a stateful mechanism."""

    @property
    def pair(self) -> tuple[int, int]:
        """The second query, the first with a state, and its largest weight."""
        return 1, int(self.weights[0, 1].argmax())


def build(name: str, kind: str, **options: Any) -> Any:
    """Build a stage or mechanism for the example: vectors of size 4, parameters from seed 0, windows below three words."""
    built = registry.find(name, kind)
    sizes = {"query": 4, "key": 4, "size": 4, "heads": 2 if kind == "mechanisms" else 1, "width": 1, "r": -0.1}
    sizes |= {"value": VALUE.shape[1]} if kind == "score" else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "scope":
            return _shrink(built.sample(BATCH, len(SOURCE)), kind)
        wanted = {size: value for size, value in sizes.items() if size in inspect.signature(built).parameters}
        built = built(**wanted, **options)
    return built.requires_grad_(False).eval() if isinstance(built, nn.Module) else _shrink(built, kind)  # no draws


def run_example(name: str, kind: str) -> Example:
    """Apply a stage, with default others, or a mechanism to the three words."""
    query, key, value = inputs()
    built = build(name, kind)
    if isinstance(built, Attention):
        memory = built.remember(key[:, 0])
        if isinstance(built, MemoryNetwork):  # the query of a hop depends on the hop before
            query, key = torch.stack([hop.question for hop in built.run_hops(query[:, 0], memory)], dim=1), memory.keys
        else:
            query, key = built.split(built.query(query[:, 0])), built.split(built.key(key[:, 0]))
        stages_of = {"score": built.score, "normalise": built.normalise, "scope": built.scope}
        if isinstance(built, Windows):
            stages_of = window_stages(built, inputs()[0][:, 0], memory)
        if isinstance(built, Mocha):
            stages_of["normalise"] = ChunkNormaliser(
                built.normalise, built.score.score_chunk(query, memory.keys), built.chunk
            )
        if isinstance(built, Forward):
            stages_of["normalise"] = PathNormaliser(collect_paths(built, memory))
        coverage_keys = collect_coverage_keys(built, memory) if hasattr(built, "add_coverage") else ()
        return Example(Request(query, memory.keys, memory.values, **stages_of, **DEFAULTS), key, built, coverage_keys)
    plain: dict[str, Any] = {"score": ScaledDot(), "normalise": Softmax(), "scope": Everywhere()}
    stages_of = plain | {kind: built}
    return Example(Request(query, prepare(stages_of["score"], key), value, **stages_of, **DEFAULTS), key)


def collect_coverage_keys(module: Any, memory: Memory) -> tuple[Tensor, ...]:
    """Keys of each query with coverage added, step by step."""
    keys, state, query = [], module.start(memory), inputs()[0][:, 0]
    for place in range(len(TARGET)):
        keys.append(module.add_coverage(memory, state).keys)
        state = module(query[:, place : place + 1], memory, state, offset=place).state
    return tuple(keys)


def collect_paths(module: Forward, memory: Memory) -> Tensor:
    """Paths to each key of each query, step by step."""
    paths, state, query = [], module.start(memory), inputs()[0][:, 0]
    for place in range(len(TARGET)):
        paths.append(module.extend_paths(state))
        state = module(query[:, place : place + 1], memory, state, offset=place).state
    return torch.cat(paths, dim=2)


def stages(example: Example) -> Stages:
    """Outputs of the three stages, composed as in attend()."""
    request = example.request
    heads = request.query.shape[1]
    scores = request.scores()
    if example.coverage_keys:
        per_query = [
            compare(request.score, request.query, keys)[:, :, place] for place, keys in enumerate(example.coverage_keys)
        ]
        scores = torch.stack(per_query, dim=2)
    normalised = request.normalise(scores, request.allowed)
    weights = normalised[0] if isinstance(normalised, tuple) else normalised
    allowed = torch.ones_like(scores, dtype=torch.bool) if request.allowed is None else request.allowed.expand_as(scores)
    context = combine(request.score, weights, repeat_heads(request.values, heads), request.offset)[-1]
    later = bool(example.coverage_keys) or isinstance(example.module, Monotonic)
    built = (
        StatefulStages if later else PositionalStages if is_positional(request.score) and request.allowed is None else Stages
    )
    return built(scores[-1], allowed[-1], weights[-1], context)


def effective_values(example: Example, result: Stages, query: int) -> Tensor:
    """Context of one query for a weight of 1 on each key, in the first head: the value and what the score adds to it."""
    request, rows = example.request, []
    values = repeat_heads(request.values, len(result.weights))
    for key in range(len(SOURCE)):
        alone = torch.zeros_like(result.weights)[None].expand(BATCH, -1, -1, -1).clone()
        alone[..., key] = 1.0
        rows.append(combine(request.score, alone, values, request.offset)[-1, 0, query])
    return torch.stack(rows)


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of the example as attend() takes them."""
    query, key, value = (vectors.expand(BATCH, 1, *vectors.shape) for vectors in (QUERY, KEY, VALUE))
    return query, key, value


def describe(stage: Any) -> str:
    """A stage in one line: its name and settings."""
    if isinstance(stage, Attention):
        return f"{type(stage).__name__}, {getattr(stage, 'heads', 1)} heads".removesuffix(", 1 heads")
    if isinstance(stage, nn.Module):
        return f"{type(stage).__name__}({stage.extra_repr()})".removesuffix("()")
    settings = ((field.name, getattr(stage, field.name)) for field in dataclasses.fields(stage))
    return f"{type(stage).__name__}({', '.join(f'{name}={_brief(value)}' for name, value in settings)})"


def untrained_note(stage: Any) -> str:
    """Note on untrained parameters for the description of a stage; empty for one without parameters."""
    return ", untrained parameters, seed 0" if isinstance(stage, nn.Module) and any(True for _ in stage.parameters()) else ""


def _shrink(stage: Any, kind: str) -> Any:
    """Lower the integer settings of a stage until one of three keys has weight 0: window 2 becomes 1."""
    if kind not in ("normalise", "scope") or not dataclasses.is_dataclass(stage):
        return stage
    while bool(attend(*inputs(), **{kind: stage}, weights=True).weights.all()):  # type: ignore[arg-type, union-attr]
        settings = {field.name: getattr(stage, field.name) for field in dataclasses.fields(stage)}
        lower = {name: value - 1 for name, value in settings.items() if type(value) is int and value > 1}
        if not lower:
            break
        stage = dataclasses.replace(stage, **lower)  # type: ignore[type-var]
    return stage


def _brief(value: Any) -> str:
    return f"{' x '.join(map(str, value.shape))} tensor" if isinstance(value, Tensor) else repr(value)


def window_stages(module: Windows, query: Float[Tensor, "batch queries query"], memory: Memory) -> dict[str, Any]:
    """Stages of a windowed attention, including its window."""
    if module.centre is None:
        return {"score": module.score, "normalise": module.normalise, "scope": module.scope}
    centre = module.centre(query, count_keys(memory), 0)
    scope = WindowScope(centre, module.width)
    normalise = GaussianWindow(module.normalise, centre, module.width) if module.centre.gaussian else module.normalise
    return {"score": module.score, "normalise": normalise, "scope": scope}
