"""The contracts of stages for every score with every normaliser in every scope."""

import math
from functools import partial
from itertools import product

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard import registry
from regard.attention import attend
from regard.testing import stages as contracts
from regard.testing.cases import Case, is_refused

from . import definition
from .stages import (
    NORMALISERS,
    REFUSED,
    SCOPES,
    SCORES,
    every_case,
    every_stage,
    every_two,
)

close = partial(assert_close, rtol=1e-12, atol=1e-12)


@every_two
def test_attend_equals_its_definition_one_number_at_a_time(case):
    inputs, stages = case.inputs(), case.build()
    expected = definition.attend(*inputs, **stages, offset=contracts.OFFSET)
    reference = attend(*inputs, **stages, impl="reference", weights=True)
    close(reference.weights, expected.weights)
    close(reference.context, expected.context)
    close(attend(*inputs, **stages).context, expected.context)


@every_stage
def test_gradients_equal_small_differences(case):
    contracts.check_gradient(case)


@every_case
def test_gradients_equal_small_differences_in_each_number(case):
    contracts.check_every_gradient(case)


@every_two
def test_a_query_that_may_see_nothing_reads_zeros_and_teaches_nothing(case):
    contracts.check_blind_query(case)


@every_two
def test_a_masked_key_might_as_well_not_exist(case):
    contracts.check_masked_key(case)


@every_stage
def test_no_bit_of_the_context_depends_on_a_masked_key_or_its_value(case):
    contracts.check_masked_values(case)


@every_stage
def test_a_row_is_attended_alike_alone_and_in_a_batch(case):
    contracts.check_rows(case)


@every_stage
def test_a_row_is_attended_alike_alone_and_in_a_batch_in_single_precision(case):
    contracts.check_rows(case, torch.float32, 1e-6)


@every_two
def test_padding_to_a_longer_length_changes_nothing(case):
    contracts.check_padding(case)


@every_stage
def test_padding_to_a_longer_length_changes_nothing_in_single_precision(case):
    contracts.check_padding(case, torch.float32, 1e-6)


@every_stage
def test_queries_one_at_a_time_through_a_memory_equal_all_at_once(case):
    contracts.check_steps(case)


@every_stage
def test_queries_one_at_a_time_equal_all_at_once_where_each_row_stands_elsewhere(case):
    contracts.check_steps(case, torch.tensor([2, 0]))


half = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@half
@every_stage
def test_half_precision_stays_finite_at_scores_of_ten_thousand(case, dtype):
    _check_that_it_is_loud(case)
    contracts.check_half_precision(case, dtype)


@half
@every_stage
def test_weights_in_half_precision_stay_finite_at_scores_of_ten_thousand(case, dtype):
    _check_that_it_is_loud(case)
    contracts.check_half_precision(case, dtype, weights=True, impl="reference")


def _check_that_it_is_loud(case):
    loudest = contracts.largest(*contracts.amplify(case.score_factory))
    assert 0.9e4 <= loudest <= 1.2e4, f"{case.score} is bounded: say in regard.testing.stages.amplify how to make it loud"


@every_stage
def test_weights_are_shares_of_what_is_allowed_and_the_context_does_not_depend_on_asking(case):
    contracts.check_weights(case)


@every_stage
def test_grouped_key_heads_equal_repeated_ones(case):
    contracts.check_grouped_heads(case)


@every_stage
def test_statistics_equal_those_of_the_weights(case):
    contracts.check_statistics(case)


def build_normaliser(name):
    normalise = NORMALISERS[name]()
    return normalise.eval() if isinstance(normalise, nn.Module) else normalise


def build_wrong_scores(value, masked):
    """Scores, the same with one of the second query's replaced, and a mask without the last key."""
    scores = 1 + torch.rand(1, 1, 3, 5)
    wrong = scores.clone()
    wrong[0, 0, 1, 2] = value
    return scores, wrong, torch.tensor([True] * 4 + [False]).expand(1, 1, 3, 5) if masked else None


def test_combinations_that_make_no_sense_are_refused_and_the_alternative_is_named():
    assert {pair for pair in product(SCORES, NORMALISERS) if is_refused(Case(*pair))} == REFUSED
    for pair in REFUSED:
        case = Case(*pair)
        with pytest.raises(ValueError, match=r"make no sense together: .*; use Softmax or Sparsemax"):
            attend(*case.inputs(), **case.build())


@pytest.mark.parametrize("name", NORMALISERS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_score_that_is_no_number_reaches_the_weights_of_its_query_alone(name, masked):
    scores, wrong, allowed = build_wrong_scores(math.nan, masked)
    normalise = build_normaliser(name)
    weights, right = normalise(wrong, allowed), normalise(scores, allowed)
    assert weights[0, 0, 1].isnan().any()
    torch.testing.assert_close(weights[0, 0, ::2], right[0, 0, ::2])
    assert not masked or (weights[..., -1] == 0).all()


@pytest.mark.parametrize("name", NORMALISERS)
def test_a_masked_score_that_is_no_number_has_no_part_in_the_weights(name):
    scores, _, allowed = build_wrong_scores(0.0, True)
    normalise = build_normaliser(name)
    wrong = scores.masked_fill(~allowed, math.nan)
    torch.testing.assert_close(normalise(wrong, allowed), normalise(scores, allowed))
    assert (normalise(torch.full_like(scores, math.nan), torch.zeros_like(allowed)) == 0).all()


@pytest.mark.parametrize("name", NORMALISERS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_query_with_nothing_above_minus_infinity_stops_no_training(name, masked):
    scores, wrong, allowed = build_wrong_scores(-math.inf, masked)
    normalise = build_normaliser(name)
    wrong[0, 0, 1] = -math.inf
    weights = normalise(wrong, allowed)
    assert not normalise.sums_to_one or weights[0, 0, 1].isnan().any()
    torch.testing.assert_close(weights[0, 0, ::2], normalise(scores, allowed)[0, 0, ::2])


@pytest.mark.parametrize("kind", ["score", "normalise", "scope"])
def test_every_file_in_a_stage_folder_is_under_contract(kind):
    assert set(registry.names(kind)) <= set({"score": SCORES, "normalise": NORMALISERS, "scope": SCOPES}[kind])
