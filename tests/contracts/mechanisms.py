"""Every mechanism there is, and names joined from several.

A file in the folder of mechanisms is here by being there. What its defaults leave out is added below by name.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from regard import registry
from regard.attention import Attention, Local
from regard.models.attention_factory import accepts_option, build_attention
from regard.testing.mechanism_cases import HEADS, KEYS, MechanismCase

from .stages import soaked

SMALL: dict[str, dict[str, Any]] = {
    "dynamic_convolution": {"filters": 2, "kernel": 3, "prior_length": 3},
    "forward": {"filters": 2, "kernel": 3},
    "gmm": {"components": 2, "initial_width": 1.0},
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
    "dynamic_convolution, longer prior": ("dynamic_convolution", {"prior_length": 5, "alpha": 0.5}),
    "forward without agent, cumulative": ("forward", {"transition_agent": False, "cumulative": True}),
    "gmm, version 0": ("gmm", {"version": 0}),
    "gmm, version 1, sum_to_one": ("gmm", {"version": 1, "normalise": "sum_to_one"}),
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
    "dynamic_convolution+entmax+causal",
    "fertility+entmax+causal",
    "forward+causal",
    "gated_coverage+top_k+local",
    "gmm+sum_to_one+local",
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


LESS = {
    "local_p": "the Gaussian takes from what its window shares",
    "local_p+additive+sparsemax": "as local_p",
    "local_p+dilated": "as local_p",
    "luong by location in a window": "as local_p",
    "local_m": "a window behind the end of a short source is empty",
}
"""Weights that add up to less than one although their normaliser would have them add up."""

MORE = {
    "memory_network": "it reads several times, and adds what it reads to the question",
    "memory_network, layerwise": "as memory_network",
    "memory_network+hard+causal": "as memory_network",
}
"""Contexts that are more than weights @ values."""


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
BOUNDED = tuple(name for name in MADE if name.startswith("gmm"))
"""Scores that are densities, which no input makes large."""
TWOFOLD = ("monotonic", "mocha", "mocha, dilated", "monotonic, local")
"""Those that compute something else while training."""


def _case(name: str, training: bool = False) -> MechanismCase:
    return MechanismCase(name, MADE[name], training, partial_weights=name in LESS, several_reads=name in MORE)


CASES = [_case(name) for name in MADE] + [_case(name, training=True) for name in TWOFOLD]
OFTEN = (*registry.names("mechanisms"), "transformer+shaw", "local_p+additive+sparsemax", "channelwise+sparsemax+causal")
every_case = pytest.mark.parametrize("case", [case if case.name in OFTEN else soaked(case) for case in CASES], ids=str)
"""Every file in every run, and what its defaults leave out in the soak, but for a few."""
