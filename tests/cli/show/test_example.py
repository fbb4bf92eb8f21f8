"""The worked example: small enough to read, the same each time, and composed as attend() composes it."""

import math
import re

import pytest
import torch
from torch.testing import assert_close

from regard import registry
from regard.attention import Attention, Everywhere, Padding, Softmax, attend
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.mechanisms.luong import Luong
from regard.cli.show.example import (
    KEY,
    QUERY,
    PositionalStages,
    Stages,
    StatefulStages,
    build,
    describe,
    inputs,
    run_example,
    stages,
    untrained_note,
    window_stages,
)
from regard.cli.show.page import list_coverage
from regard.cli.show.steps import write_steps

STAGES = [(kind, name) for kind in ("score", "normalise", "scope") for name in registry.names(kind)]


@pytest.mark.parametrize(("kind", "name"), STAGES, ids=str)
def test_the_stages_kept_are_those_of_attend(kind, name):
    found, expected = stages(run_example(name, kind)), attend(*inputs(), **{kind: build(name, kind)}, weights=True)
    torch.testing.assert_close(found.weights, expected.weights[-1])
    torch.testing.assert_close(found.context, expected.context[-1])


@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_the_stages_kept_are_those_of_the_mechanism(name):
    example = run_example(name, "mechanisms")
    assert isinstance(example.module, Attention)
    expected = example.module(QUERY[None], example.module.remember(KEY[None]), weights=True)
    torch.testing.assert_close(stages(example).weights, expected.weights[0])


@pytest.mark.parametrize(("kind", "name"), [("score", "additive"), ("positions", "learned"), ("mechanisms", "luong")])
def test_a_thing_that_learns_is_built_alike_each_time_and_leaves_the_random_numbers_alone(kind, name):
    before = torch.get_rng_state()
    one, other = build(name, kind), build(name, kind)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not any(each.requires_grad for each in one.parameters())


@pytest.mark.parametrize(
    ("kind", "name", "setting"),
    [("scope", "local", "Local(window=1)"), ("scope", "blocks", "Blocks(size=2)"), ("normalise", "top_k", "TopK(k=2)")],
)
def test_a_number_too_large_for_three_words_is_lowered(kind, name, setting):
    assert describe(build(name, kind)) == setting


def test_the_pair_to_follow_is_one_whose_view_the_scope_cuts():
    weights = torch.tensor([[[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]])
    found = Stages(weights, torch.ones(1, 3, 3, dtype=torch.bool).tril(), weights, weights)
    assert found.pair == (1, 1)
    assert found._replace(allowed=torch.ones_like(found.allowed)).pair == (0, 0)


def test_where_a_score_compares_positions_the_pair_to_follow_stands_apart():
    weights = torch.tensor([[[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]])
    assert PositionalStages(weights, weights > -1, weights, weights).pair == (2, 1)
    assert isinstance(stages(run_example("alibi", "score")), PositionalStages)
    assert not isinstance(stages(run_example("dot", "score")), PositionalStages)


@pytest.mark.parametrize("name", ["coverage", "location_sensitive"])
def test_where_a_look_depends_on_the_one_before_the_second_is_followed(name):
    example = run_example(name, "mechanisms")
    assert len(example.coverage_keys) == len(QUERY)
    assert torch.equal(example.coverage_keys[0], example.request.keys)
    assert not torch.equal(example.coverage_keys[1], example.request.keys)
    found = stages(example)
    assert isinstance(found, StatefulStages)
    assert found.pair == (1, int(found.weights[0, 1].argmax()))


def test_a_thing_is_told_by_its_name_and_settings():
    assert describe(build("entmax", "normalise")) == "Entmax(alpha=1.5, learn=False)"
    assert describe(build("transformer", "mechanisms")) == "Transformer, 2 heads"
    assert describe(Padding(torch.ones(2, 3, dtype=torch.bool))) == "Padding(keep=2 x 3 tensor)"


@pytest.mark.parametrize(
    ("kind", "name", "learns"),
    [("score", "additive", True), ("mechanisms", "luong", True), ("score", "dot", False), ("normalise", "entmax", False)],
)
def test_what_learns_is_called_untrained(kind, name, learns):
    assert untrained_note(build(name, kind)) == (", untrained parameters, seed 0" if learns else "")


@pytest.mark.parametrize("kind", [LocalM, LocalP])
def test_taken_apart_the_stages_give_the_weights_of_the_mechanism(kind):
    module = kind(3, width=2)
    query, source = torch.randn(2, 5, 3), torch.randn(2, 8, 3)
    memory = module.remember(source)
    stages = window_stages(module, query, memory)
    allowed = stages["scope"].allowed(2, 1, 5, 8, 0, torch.device("cpu"))
    weights = stages["normalise"](stages["score"](query[:, None], memory.keys), allowed)
    assert_close(weights, module(query, memory, offset=0, weights=True).weights)


def test_without_a_window_there_is_nothing_to_take_apart():
    module = Luong(3)
    stages = window_stages(module, torch.randn(1, 2, 3), module.remember(torch.randn(1, 4, 3)))
    assert stages == {"score": module.score, "normalise": Softmax(), "scope": Everywhere()}


def test_the_page_says_what_is_hidden_and_how_a_share_falls_off():
    assert "stands at position 0; hidden from it: Jerry, since allowed(q, k) ⇔ |k - p_q| ≤ width" in write_steps("local_m")
    told = re.search(r"= ([\d.]+),  \1 · exp\(-\(2 - ([\d.]+)\)² / \(2 · 0\.5²\)\) = ([\d.]+)", write_steps("local_p"))
    inner, centre, share = map(float, told.groups())
    assert share == pytest.approx(inner * math.exp(-((2 - centre) ** 2) / 0.5), abs=2e-3)


def test_one_kernel_reads_through_windows():
    for name, kernel in (("local_m", "flash"), ("local_p", "predicted_window")):
        answers = list_coverage(name, "mechanisms")
        assert answers.pop(kernel) == "needs a GPU, got cpu"
        assert set(answers.values()) == {f"reads all keys, and {name} gathers those of its windows"}
    assert "covers it" in list_coverage("luong", "mechanisms").values()
