"""The contracts of stages bite: each is broken by a stage with that defect."""

from functools import partial

import pytest
import torch

from regard.testing import stages as contracts
from regard.testing.cases import Case, list_stages

from . import components

pytestmark = pytest.mark.unhooked


def case(kind, component, **others):
    pool = list_stages().add(kind, "component", component)
    return Case(**{kind: "component"} | others, stages=pool)


@pytest.mark.parametrize("check", [contracts.check_gradient, contracts.check_every_gradient])
def test_a_wrong_gradient_is_caught(check):
    check(Case())
    with pytest.raises((AssertionError, RuntimeError), match="Jacobian mismatch"):
        check(case("score", components.Halved))


@pytest.mark.parametrize(
    "check",
    [contracts.check_masked_key, contracts.check_blind_query, contracts.check_weights],
)
def test_a_normaliser_without_mask_is_caught_by_all_contracts_of_masks(check):
    check(Case(scope="causal"))
    with pytest.raises(AssertionError):
        check(case("normalise", components.Unmasked, scope="causal"))


@pytest.mark.parametrize("check", [contracts.check_rows, partial(contracts.check_rows, dtype=torch.float32, tolerance=1e-6)])
def test_a_score_across_rows_is_caught(check):
    check(Case())
    with pytest.raises(AssertionError):
        check(case("score", components.AcrossRows))


def test_scores_are_amplified_to_ten_thousand():
    assert 0.9e4 <= contracts.largest(*contracts.amplify(components.L1)) <= 1.2e4
    assert 0.9e4 <= contracts.largest(*contracts.amplify(list_stages().scores["additive"])) <= 1.2e4


def test_statistics_are_those_of_their_formulas():
    weights = torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]]], dtype=torch.float64)
    statistics = contracts.compute_statistics(weights, weights > 0)
    assert statistics["entropy"].item() == pytest.approx(0.6931471805599453)
    assert statistics["mean_position"].item() == 0.5
    assert statistics["uniform"].tolist() == [[[0.5, 0.5, 0.0, 0.0]]]
