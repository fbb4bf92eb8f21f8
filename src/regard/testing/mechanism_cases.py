"""Cases of the mechanism contracts: a mechanism in small sizes, and the sources and queries that it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.per_head import repeat_heads
from regard.attention.score import combine, compare
from regard.attention.score.location import Location
from regard.attention.types import Encoded, Memory

BATCH, BEAMS, QUERIES, KEYS = 3, 2, 4, 6
QUERY, KEY, HEADS = 4, 3, 2
LENGTHS = (6, 4, 1)
KEEP = torch.arange(KEYS) < torch.tensor(LENGTHS)[:, None]
OFFSETS = (2, 0, 1)

MakeAttention = Callable[..., Attention | None]
"""Factory of an attention from the sizes of query and key, and options such as dropout."""


@dataclass(frozen=True)
class MechanismCase:
    """A mechanism as it is built afresh for each contract, in double precision and in one of its two modes."""

    name: str
    make: MakeAttention
    training: bool = False
    partial_weights: bool = False
    """Weights may add up to less than one although the normaliser's do: a window or a Gaussian takes from them."""
    several_reads: bool = False
    """The context is more than weights @ values: it reads several times."""

    def __str__(self) -> str:
        return f"{self.name}, training" if self.training else self.name

    def build(self, **options: Any) -> Attention:
        """The mechanism with no parameter at its initial value."""
        torch.manual_seed(2)  # with this seed, walks over the keys stop at several places
        mechanism = self.make(QUERY, KEY, **options)
        assert mechanism is not None
        return perturb(mechanism).train(self.training)


def perturb(module: Any) -> Any:
    """The module in double precision, each parameter a little away from its initial value."""
    for parameter in module.double().parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    for part in module.modules():
        if hasattr(part, "r") and hasattr(part, "g"):  # as monotonic begins, it would not stop at any of a few keys
            nn.init.constant_(part.g, 1.0)
            nn.init.constant_(part.r, 0.3)
    return module


def make_source(keep: Tensor | None = KEEP, keys: int = KEYS) -> Encoded:
    """A source whose values are not what is compared."""
    data, values = torch.randn(2, BATCH, keys, KEY, dtype=torch.float64)
    return Encoded(data, keep, values=values)


def spoil_padding(encoded: Encoded) -> Encoded:
    """Source with NaN in its padding."""
    assert encoded.keep is not None
    padding = ~encoded.keep[..., None]
    data, values = (side.masked_fill(padding, torch.nan) for side in (encoded.data, require_values(encoded)))
    return encoded._replace(data=data, values=values)


def require_values(encoded: Encoded) -> Tensor:
    """The values of a source that has values of its own."""
    assert encoded.values is not None
    return encoded.values


def make_query(queries: int = QUERIES, rows: int = BATCH) -> Tensor:
    """A few queries for each row, different enough to attend elsewhere."""
    return 2 * torch.randn(rows, queries, QUERY, dtype=torch.float64)


def read_values(module: Attention, weights: Tensor, memory: Memory) -> Tensor:
    """weights @ values in every head, the heads side by side or added up; of several hops, the last.

    The first query stands at 1, which is for scores that add to the context.
    """
    heads = combine(module.score, weights, repeat_heads(memory.values, weights.shape[1]), 1)
    heads = heads[:, -1:] if hasattr(module, "hops") else heads
    merged = heads.sum(1) if getattr(module, "how", "") == "sum" else heads.transpose(1, 2).flatten(2)
    output: Tensor = module.output(merged)
    return output


@cache
@torch.no_grad()
def amplify(case: MechanismCase) -> tuple[Attention, Tensor, Encoded]:
    """A mechanism, a query and a source with scores of about ten thousand, or the largest there are of a bounded score."""
    module, query, encoded = case.build(), 10 * make_query(2), make_source()
    while largest(module, query, encoded) < 0.6e4 and query.abs().amax() < 1e4:
        query, encoded = 1.5 * query, encoded._replace(data=1.5 * encoded.data)
    for _ in range(2):  # a second time where a term that no parameter scales was the largest
        factor = 1e4 / largest(module, query, encoded)
        if factor < 2 or not isinstance(module.score, nn.Module):
            break
        parameters = dict(module.score.named_parameters())
        for name in {"g", "r", "worth.v.weight"} & set(parameters) or {"v.weight"} & set(parameters):
            parameters[name].mul_(factor)  # no input is large enough where a tanh stands between
    return module, query, encoded


def largest(module: Attention, query: Tensor, encoded: Encoded) -> float:
    """The largest absolute score, in the first hop where there are several."""
    queries, keys = module.split(module.query(query)), module.remember(encoded).keys
    keys = keys[..., :1] if isinstance(module.score, Location) else keys[:, : queries.shape[1]]
    return compare(module.score, queries, keys, 1).abs().amax().item()
