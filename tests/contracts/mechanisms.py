"""Every mechanism there is, and names joined from several, in sizes small enough to test them all.

A file in the folder of mechanisms is here by being there. What its defaults leave out is added below by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard import registry
from regard.attention import Attention, Encoded, Local, Location, Memory
from regard.attention.per_head import repeat_heads
from regard.attention.score import combine, compare
from regard.models.attention_factory import accepts_option, build_attention

from .stages import soaked

BATCH, BEAMS, QUERIES, KEYS = 3, 2, 4, 6
QUERY, KEY, HEADS = 4, 3, 2
LENGTHS = (6, 4, 1)
KEEP = torch.arange(KEYS) < torch.tensor(LENGTHS)[:, None]
OFFSETS = (2, 0, 1)

SMALL: dict[str, dict[str, Any]] = {
    "grid_coverage": {"filters": 2, "kernel": 3},
    "local_m": {"width": 1},
    "local_p": {"width": 2},
    "location_sensitive": {"filters": 2, "kernel": 3},
    "monotonic": {"noise": 0.0},
    "mocha": {"noise": 0.0},
}
"""What a mechanism is told so that a short source shows what it does."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "local_p that renormalises": ("local_p", {"renormalise": True}),
    "luong by location in a window": ("luong", {"score": "location", "window": "local_p", "width": 1}),
    "location_sensitive, cumulative": ("location_sensitive", {"cumulative": True}),
    "memory_network, layerwise": ("memory_network", {"tying": "layerwise"}),
    "mocha, dilated": ("mocha", {"chunk": 3, "scope": "dilated"}),
    "monotonic, local": ("monotonic", {"scope": Local(2)}),
    "transformer that adds its heads": ("transformer", {"merge": "sum", "key_heads": 1}),
}

JOINED = (
    "local_p+additive+sparsemax",
    "transformer+rotary",
    "transformer+shaw",
    "shaw",
    "additive+hard",
    "additive+gumbel",
    "additive+marginal",
    "additive+structured",
    "local_m+location",
)
SCOPED = (
    "bahdanau+entmax+local",
    "channelwise+sparsemax+causal",
    "coverage+sparsemax+causal",
    "fertility+entmax+causal",
    "gated_coverage+top_k+local",
    "grid_coverage+entmax+causal",
    "linear+causal",
    "local_p+dilated",
    "location_sensitive+hard+local",
    "luong+location+dilated",
    "memory_network+hard+causal",
    "transformer+t5+structured+causal",
)
NAMES = (*registry.names("mechanisms"), *JOINED)
"""What a decoder is asked to read by."""


@dataclass(frozen=True)
class Case:
    """A mechanism as it is built for each test afresh, in double precision and in one of its two modes."""

    name: str
    make: Callable[..., Attention | None]
    training: bool = False

    def __str__(self) -> str:
        return f"{self.name}, training" if self.training else self.name

    def build(self, **options: Any) -> Attention:
        """One that has learned something: none of its parameters is where it began."""
        torch.manual_seed(2)  # a draw by which walks stop at several places
        made = self.make(QUERY, KEY, **options)
        assert made is not None
        return awake(made).train(self.training)


def awake(made: nn.Module) -> Any:
    """The same in double precision, a little away from where it began."""
    for parameter in made.double().parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    for module in made.modules():
        if hasattr(module, "r"):  # as monotonic begins, it would not stop at any of a few keys
            nn.init.constant_(module.g, 1.0)
            nn.init.constant_(module.r, 0.3)
    return made


def _from_folder(name: str, **options: Any) -> Callable[..., Attention]:
    heads = {"heads": HEADS} if accepts_option(name, "heads") else {}
    return partial(registry.find(name, "mechanisms"), **heads | SMALL.get(name, {}) | options)


def named(name: str) -> Callable[..., Attention | None]:
    """What a config makes of a name."""
    return partial(build_attention, name, heads=HEADS, limit=KEYS + 2)


MADE: dict[str, Callable[..., Attention | None]] = {
    **{name: _from_folder(name) for name in registry.names("mechanisms")},
    **{text: _from_folder(name, **options) for text, (name, options) in VARIANTS.items()},
    **{name: named(name) for name in (*JOINED, *SCOPED)},
}
TWOFOLD = ("monotonic", "mocha", "mocha, dilated", "monotonic, local")
"""Those that compute something else while training."""

CASES = [Case(name, make) for name, make in MADE.items()] + [Case(name, MADE[name], training=True) for name in TWOFOLD]
OFTEN = (*registry.names("mechanisms"), "transformer+shaw", "local_p+additive+sparsemax", "channelwise+sparsemax+causal")
every_case = pytest.mark.parametrize("case", [case if case.name in OFTEN else soaked(case) for case in CASES], ids=str)
"""Every file in every run, and what its defaults leave out in the soak, but for a few."""


def source(keep: Tensor | None = KEEP, keys: int = KEYS) -> Encoded:
    """A source whose values are not what is compared."""
    data, values = torch.randn(2, BATCH, keys, KEY, dtype=torch.float64)
    return Encoded(data, keep, values=values)


def spoiled(encoded: Encoded) -> Encoded:
    """The same with NaN in its padding."""
    assert encoded.keep is not None
    data, values = (each.masked_fill(~encoded.keep[..., None], torch.nan) for each in (encoded.data, encoded.values))
    return encoded._replace(data=data, values=values)


def question(queries: int = QUERIES, rows: int = BATCH) -> Tensor:
    """A few queries for each row, far enough from each other to look elsewhere."""
    return 2 * torch.randn(rows, queries, QUERY, dtype=torch.float64)


def read(made: Attention, weights: Tensor, memory: Memory) -> Tensor:
    """weights @ values in every head, the heads side by side or added up; of several hops, the last.

    The first query stands at 1, which is for scores that add to what is read.
    """
    heads = combine(made.score, weights, repeat_heads(memory.values, weights.shape[1]), 1)
    heads = heads[:, -1:] if hasattr(made, "hops") else heads
    return made.output(heads.sum(1) if getattr(made, "how", "") == "sum" else heads.transpose(1, 2).flatten(2))


@cache
@torch.no_grad()
def loud(case: Case) -> tuple[Attention, Tensor, Encoded]:
    """A mechanism, a query and a source with scores of about ten thousand, and with values that are small."""
    made, query, encoded = case.build(), 10 * question(2), source()
    while loudest(made, query, encoded) < 0.6e4 and query.abs().amax() < 1e4:
        query, encoded = 1.5 * query, encoded._replace(data=1.5 * encoded.data)
    missing = 1e4 / loudest(made, query, encoded)
    if missing > 2:  # no input is loud enough where a tanh stands between
        learned = dict(made.score.named_parameters())
        for name in {"g", "r", "worth.v.weight"} & set(learned) or {"v.weight"}:
            learned[name] *= missing
    assert 0.6e4 <= loudest(made, query, encoded) <= 1.5e4, "say here how to make it loud"
    return made, query, encoded


def loudest(made: Attention, query: Tensor, encoded: Encoded) -> float:
    """The largest score, in the first hop where there are several."""
    asked, keys = made.split(made.query(query)), made.remember(encoded).keys
    keys = keys[..., :1] if isinstance(made.score, Location) else keys[:, : asked.shape[1]]
    return compare(made.score, asked, keys, 1).abs().amax().item()
