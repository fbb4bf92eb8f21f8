"""Cases: stages by name, cases that cover them, and what is refused."""

import torch

from regard.attention import Causal, Padding
from regard.testing.cases import BATCH, KEYS, Attend, Case, drop_refused, list_stages, move_scope

from . import components


def test_a_diagonal_has_every_stage():
    stages = list_stages()
    diagonal = stages.diagonal()
    for place, table in enumerate(stages):
        assert {case.names[place] for case in diagonal} == set(table)


def test_a_component_meets_every_stage_of_the_other_kinds():
    stages = list_stages().add("score", "L1", components.L1)
    cases = stages.diagonal(score="L1")
    assert {case.score for case in cases} == {"L1"}
    assert {case.normalise for case in cases} == set(stages.normalisers)
    assert {case.scope for case in cases} == set(stages.scopes)
    assert isinstance(cases[0].build()["score"], components.L1)


def test_the_stages_of_the_folders_stay_as_they_are():
    list_stages().add("score", "L1", components.L1)
    assert "L1" not in list_stages().scores


def test_refused_combinations_are_dropped():
    cases = [Case("distance", "sum_to_one"), Case("distance", "softmax")]
    assert drop_refused(cases) == cases[1:]


def test_a_scope_with_a_mask_moves_to_other_sizes_and_others_stay():
    padding = Padding(torch.arange(KEYS).expand(BATCH, KEYS) < 2)
    moved = move_scope(padding, batch=1, keys=2, row=1)
    assert moved.allowed(1, 1, 1, 2, 0, torch.device("cpu")).all()
    assert move_scope(Causal(), batch=1) == Causal()


def test_attend_is_a_module_of_its_stages():
    case = Case("additive")
    context, weights = Attend(**case.build())(*case.inputs(), weights=True)
    assert context.shape[:3] == weights.shape[:3]
