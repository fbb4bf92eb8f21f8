"""The worked example: a small sentence, "Tom chases Jerry", and one thing at work on it."""

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
"""The words as an encoder and a decoder might see them, (somebody, an action, a cat, a mouse), and what is read there."""

BATCH = 2
"""The sentence stands in the batch twice and the last row is shown: padding hides nothing in the first."""

PLAINLY: dict[str, Any] = {"dropout": 0.0, "offset": 0, "weights": False, "statistics": ()}


class Example(NamedTuple):
    """One thing at work on the three words. `key` is what its score prepares; `module` is there for a mechanism.

    `told` are the keys that each query meets, where a mechanism tells them what was looked at before.
    """

    request: Request
    key: Tensor
    module: Attention | None = None
    told: tuple[Tensor, ...] = ()


class Stages(NamedTuple):
    """What each stage gave in the row that is shown, by head and query."""

    scores: Tensor
    allowed: Tensor
    weights: Tensor
    context: Tensor

    @property
    def pair(self) -> tuple[int, int]:
        """The query and the key to follow: one whose view the scope cuts, if it does, and what that query sees best."""
        seen = self.allowed[0].sum(-1).tolist()
        row = next((row for row, many in enumerate(seen) if 1 < many < len(SOURCE)), 0)
        return row, int(self.weights[0, row].argmax())


class Apart(Stages):
    """The stages of a score that compares positions."""

    @property
    def pair(self) -> tuple[int, int]:
        """The last query, and what it sees best among the words before: at one position there would be nothing to see."""
        return len(TARGET) - 1, int(self.weights[0, -1, :-1].argmax())


class Later(Stages):
    """The stages of a mechanism that remembers where it looked."""

    @property
    def pair(self) -> tuple[int, int]:
        """The second query, the first that has something to remember, and what it sees best."""
        return 1, int(self.weights[0, 1].argmax())


def build(name: str, kind: str, **options: Any) -> Any:
    """A thing as the examples use it: for vectors of 4, parameters from seed 0, small enough for three words to show it."""
    made = registry.find(name, kind)
    sizes = {"query": 4, "key": 4, "size": 4, "heads": 2 if kind == "mechanisms" else 1, "width": 1, "r": -0.1}
    sizes |= {"value": VALUE.shape[1]} if kind == "score" else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "scope":
            return _smaller(made.sample(BATCH, len(SOURCE)), kind)
        wanted = {size: value for size, value in sizes.items() if size in inspect.signature(made).parameters}
        built = made(**wanted, **options)
    return built.requires_grad_(False).eval() if isinstance(built, nn.Module) else _smaller(built, kind)  # no draws


def work(name: str, kind: str) -> Example:
    """A stage among plain ones, or a mechanism, at work on the three words."""
    query, key, value = inputs()
    made = build(name, kind)
    if isinstance(made, Attention):
        memory = made.remember(key[:, 0])
        if isinstance(made, MemoryNetwork):  # what a hop asks depends on the hop before
            query, key = torch.stack([hop.question for hop in made.run_hops(query[:, 0], memory)], dim=1), memory.keys
        else:
            query, key = made.split(made.query(query[:, 0])), made.split(made.key(key[:, 0]))
        chosen = {"score": made.score, "normalise": made.normalise, "scope": made.scope}
        if isinstance(made, Windows):
            chosen = apart(made, inputs()[0][:, 0], memory)
        if isinstance(made, Mocha):
            chosen["normalise"] = ChunkNormaliser(made.normalise, made.score.score_chunk(query, memory.keys), made.chunk)
        told = tell(made, memory) if hasattr(made, "add_coverage") else ()
        return Example(Request(query, memory.keys, memory.values, **chosen, **PLAINLY), key, made, told)
    plain: dict[str, Any] = {"score": ScaledDot(), "normalise": Softmax(), "scope": Everywhere()}
    chosen = plain | {kind: made}
    return Example(Request(query, prepare(chosen["score"], key), value, **chosen, **PLAINLY), key)


def tell(module: Any, memory: Memory) -> tuple[Tensor, ...]:
    """The keys that each query meets, look by look."""
    keys, state, query = [], module.start(memory), inputs()[0][:, 0]
    for place in range(len(TARGET)):
        keys.append(module.add_coverage(memory, state).keys)
        state = module(query[:, place : place + 1], memory, state, offset=place).state
    return tuple(keys)


def stages(example: Example) -> Stages:
    """The three stages one after the other, as attend() composes them, each kept."""
    request = example.request
    heads = request.query.shape[1]
    scores = request.scores()
    if example.told:
        looks = [compare(request.score, request.query, keys)[:, :, place] for place, keys in enumerate(example.told)]
        scores = torch.stack(looks, dim=2)
    normalised = request.normalise(scores, request.allowed)
    weights = normalised[0] if isinstance(normalised, tuple) else normalised
    allowed = torch.ones_like(scores, dtype=torch.bool) if request.allowed is None else request.allowed.expand_as(scores)
    context = combine(request.score, weights, repeat_heads(request.values, heads), request.offset)[-1]
    later = bool(example.told) or isinstance(example.module, Monotonic)
    made = Later if later else Apart if is_positional(request.score) and request.allowed is None else Stages
    return made(scores[-1], allowed[-1], weights[-1], context)


def worth(example: Example, found: Stages, query: int) -> Tensor:
    """What one query would read of each key alone, in the first head: its value, and what the score adds to it there."""
    request, rows = example.request, []
    values = repeat_heads(request.values, len(found.weights))
    for key in range(len(SOURCE)):
        alone = torch.zeros_like(found.weights)[None].expand(BATCH, -1, -1, -1).clone()
        alone[..., key] = 1.0
        rows.append(combine(request.score, alone, values, request.offset)[-1, 0, query])
    return torch.stack(rows)


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of the example as attend() takes them."""
    query, key, value = (each.expand(BATCH, 1, *each.shape) for each in (QUERY, KEY, VALUE))
    return query, key, value


def told(stage: Any) -> str:
    """A stage in one line: its name and settings."""
    if isinstance(stage, Attention):
        return f"{type(stage).__name__}, {getattr(stage, 'heads', 1)} heads".removesuffix(", 1 heads")
    if isinstance(stage, nn.Module):
        return f"{type(stage).__name__}({stage.extra_repr()})".removesuffix("()")
    settings = ((each.name, getattr(stage, each.name)) for each in dataclasses.fields(stage))
    return f"{type(stage).__name__}({', '.join(f'{name}={_brief(value)}' for name, value in settings)})"


def untrained(stage: Any) -> str:
    """What to add to the name of a stage that learns and has not learned yet."""
    return ", untrained parameters, seed 0" if isinstance(stage, nn.Module) and any(True for _ in stage.parameters()) else ""


def _smaller(stage: Any, kind: str) -> Any:
    """A stage that is set by a number, with the number lowered until a key of three goes unread: window 2 becomes 1."""
    if kind not in ("normalise", "scope") or not dataclasses.is_dataclass(stage):
        return stage
    while bool(attend(*inputs(), **{kind: stage}, weights=True).weights.all()):  # type: ignore[arg-type, union-attr]
        settings = {each.name: getattr(stage, each.name) for each in dataclasses.fields(stage)}
        lower = {name: value - 1 for name, value in settings.items() if type(value) is int and value > 1}
        if not lower:
            break
        stage = dataclasses.replace(stage, **lower)  # type: ignore[type-var]
    return stage


def _brief(value: Any) -> str:
    return f"{' x '.join(map(str, value.shape))} tensor" if isinstance(value, Tensor) else repr(value)


def apart(module: Windows, query: Float[Tensor, "batch queries query"], memory: Memory) -> dict[str, Any]:
    """The stages of an attention through a window, the window among them."""
    if module.centre is None:
        return {"score": module.score, "normalise": module.normalise, "scope": module.scope}
    centre = module.centre(query, count_keys(memory), 0)
    scope = WindowScope(centre, module.width)
    normalise = GaussianWindow(module.normalise, centre, module.width) if module.centre.gaussian else module.normalise
    return {"score": module.score, "normalise": normalise, "scope": scope}
