"""The contracts of mechanisms bite: each is broken by a mechanism with that defect."""

from functools import partial

import pytest
import torch

from regard.attention import Attention
from regard.testing import mechanisms as contracts
from regard.testing.mechanism_cases import MechanismCase

from . import components

pytestmark = pytest.mark.unhooked


class Constant(Attention):
    """The same context for every query."""

    def forward(self, query, *arguments, **options):
        return super().forward(torch.zeros_like(query), *arguments, **options)


class Impure(Attention):
    """Counts its calls in a buffer."""

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, *arguments, **options):
        self.calls += 1
        return super().forward(*arguments, **options)


class Unscaled(Attention):
    """Gives the weights after dropout."""

    def project_output(self, attended, state=()):
        weights = None if attended.weights is None else attended.weights * (1 - self.dropout)
        return super().project_output(attended._replace(weights=weights), state)


def case(component, **options):
    return MechanismCase(component.__name__, partial(component, size=4), **options)


@pytest.mark.parametrize(
    ("check", "component"),
    [
        (contracts.check_variety, Constant),
        (contracts.check_purity, Impure),
        (contracts.check_dropout, Unscaled),
        (contracts.check_padding, components.Forgetful),
        (contracts.check_blind_row, components.Forgetful),
        (contracts.check_empty_source, components.Forgetful),
        (contracts.check_weights, components.Forgetful),
    ],
)
def test_a_defect_is_caught(check, component):
    check(case(Attention))
    with pytest.raises(AssertionError):
        check(case(component))


def test_what_is_said_of_weights_and_reads_is_checked_too():
    with pytest.raises(AssertionError, match="it need not be among those whose weights add up to less"):
        contracts.check_weights(case(Attention, partial_weights=True))
    with pytest.raises(AssertionError, match="it need not be among those that read several times"):
        contracts.check_context(case(Attention, several_reads=True))


def test_options_that_are_not_heeded_are_caught():
    contracts.check_options(Attention)
    with pytest.raises(AssertionError):
        contracts.check_options(lambda query, key, dropout, **options: Attention(query, key, **options))
