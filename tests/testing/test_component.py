"""The suite of one component: sound ones pass, and each defect is caught by the contract about it."""

import sys
import types

import pytest

from regard.errors import ConfigError
from regard.testing import check_component, list_contracts, run_contract

from . import components

pytestmark = pytest.mark.unhooked  # a defect is an error of shape too, for some


def reason(component, kind, name):
    """The reason why a class fails a contract; None where it does not."""
    [contract] = [each for each in list_contracts(component, kind) if each.name == name]
    return run_contract(contract, component).reason


@pytest.mark.parametrize("component", [components.L1, components.Even, components.Whole])
def test_a_sound_component_passes(component):
    outcomes = list(check_component(component))
    assert [each for each in outcomes if not each.passed] == []
    assert [each.name for each in outcomes][:2] == ["interface", "construction"]
    assert len(outcomes) > 10
    assert all(each.sentence.endswith(".") for each in outcomes)


def test_a_score_without_prepare_is_told_what_to_add():
    [outcome] = check_component(components.Unprepared)
    assert outcome.reason == (
        "Unprepared has no prepare(key): the key's side of the score, computed once per source; "
        "add `def prepare(self, key): return key`"
    )


@pytest.mark.parametrize(
    ("component", "kind", "contract"),
    [
        (components.AcrossRows, "score", "rows"),
        (components.Halved, "score", "gradient"),
        (components.Unmasked, "normalise", "masked_key"),
        (components.Doubled, "normalise", "weights"),
        (components.Forgetful, "mechanisms", "padding"),
        (components.Forgetful, "mechanisms", "weights"),
    ],
)
def test_a_defect_fails_its_contract(component, kind, contract):
    text = reason(component, kind, contract)
    assert text is not None
    assert "\n" not in text


@pytest.mark.parametrize(("component", "text"), [(components.Sizeless, "limit"), (components.Unsampled, "mask")])
def test_after_a_construction_that_fails_nothing_else_runs(component, text):
    outcomes = list(check_component(component))
    assert [each.name for each in outcomes] == ["interface", "construction"]
    assert outcomes[-1].reason.startswith("TypeError: ")
    assert text in outcomes[-1].reason


def test_a_reason_names_the_case():
    assert "(with Unmasked-" not in (reason(components.Unmasked, "normalise", "gradient") or "")
    assert "-Unmasked-" in reason(components.Unmasked, "normalise", "masked_key")


def test_contracts_can_be_skipped_by_name():
    names = [each.name for each in check_component(components.L1, skip=["gradient", "half_precision"])]
    assert "gradient" not in names
    assert "rows" in names


def test_a_contract_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="no contract of L1 is called 'slopes'; there are construction, gradient, "):
        list(check_component(components.L1, skip=["slopes"]))


def test_a_class_of_no_kind_is_refused():
    with pytest.raises(ConfigError, match="Stranger is no score, normaliser, scope or mechanism: a score has prepare"):
        list(check_component(components.Stranger))


def test_compiling_is_checked_where_asked():
    names = [each.name for each in list_contracts(components.L1, "score", compiled=True)]
    assert names[-2:] == ["compile", "export"]


def test_a_class_of_a_notebook_has_a_reason_without_a_file(monkeypatch):
    notebook = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    names = {"__name__": "__main__"}
    exec(
        "class Failing:\n    def prepare(self, key):\n        raise ValueError('no keys')\n    def __call__(self, q, k): ...",
        names,
    )
    outcomes = list(check_component(names["Failing"], "score"))
    reasons = [outcome.reason for outcome in outcomes if not outcome.passed]
    assert reasons
    assert all("ValueError: no keys" in reason and " at " not in reason for reason in reasons)
