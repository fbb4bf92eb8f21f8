"""The contracts of mechanisms for each, built from its sizes or by its name, and in every decoder that reads by it."""

import pytest
import torch

from regard import registry
from regard.testing import mechanisms as contracts
from regard.testing.decoders import DECODERS, check_decoder
from regard.testing.mechanism_cases import amplify, largest

from .mechanisms import BOUNDED, CASES, NAMES, OFTEN, every_case, named
from .stages import soaked

unhooked = pytest.mark.unhooked  # what takes longest, since all the others check the same shapes


def test_every_file_in_the_folder_is_under_contract():
    assert set(registry.names("mechanisms")) <= {case.name for case in CASES} & set(NAMES)


@every_case
def test_there_is_something_to_see(case):
    contracts.check_variety(case)


@every_case
def test_queries_one_at_a_time_equal_all_at_once(case):
    contracts.check_steps(case)


@every_case
def test_padding_might_as_well_not_exist(case):
    contracts.check_padding(case)


@every_case
def test_what_stands_in_padding_teaches_nothing(case):
    contracts.check_padding_gradient(case)


@every_case
def test_a_row_alone_equals_the_row_in_a_batch(case):
    contracts.check_rows(case)


@every_case
def test_who_sees_nothing_reads_zeros_and_teaches_nothing(case):
    contracts.check_blind_row(case)


@every_case
def test_a_source_without_places_is_like_one_of_padding(case):
    contracts.check_empty_source(case)


@every_case
def test_weights_are_shares_of_what_may_be_seen(case):
    contracts.check_weights(case)


@every_case
def test_the_context_is_the_values_by_their_weights(case):
    contracts.check_context(case)


@every_case
def test_what_is_asked_for_beside_the_context_does_not_change_it(case):
    contracts.check_requests(case)


@every_case
def test_asking_changes_nothing_that_was_given(case):
    contracts.check_purity(case)


@every_case
def test_weights_are_those_before_dropout(case):
    contracts.check_dropout(case)


@unhooked
@every_case
def test_gradients_equal_small_differences(case):
    contracts.check_gradient(case)


@unhooked
@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_every_precision_stays_finite_at_scores_of_ten_thousand(case, dtype):
    loudness = largest(*amplify(case))
    assert case.name in BOUNDED or 0.6e4 <= loudness <= 1.5e4, (
        "say in regard.testing.mechanism_cases.amplify how to make it loud"
    )
    contracts.check_precision(case, dtype)


@every_case
def test_beams_that_share_a_memory_find_what_they_would_alone(case):
    contracts.check_beams(case)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_takes_the_options_of_a_config(name):
    contracts.check_options(named(name))


@unhooked
@pytest.mark.parametrize("name", [name if name in (*OFTEN, "shaw") else soaked(name) for name in NAMES])
@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_step_by_step_equals_itself_taught_and_itself_saved(name, kind):
    check_decoder(named(name), kind)
