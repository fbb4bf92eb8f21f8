import os
import sys

import pytest

import regard
from regard.attention.score.additive import Additive


def test_stages_and_mechanisms_are_found_by_name():
    assert regard.find("additive") is Additive


def test_it_says_which_version_it_is():
    assert all(part.isdigit() for part in regard.__version__.split(".")[:2])


def test_everything_it_promises_is_there():
    for name in regard.__all__:
        assert hasattr(regard, name)


@pytest.mark.parametrize(
    ("imported", "policy", "after"), [(False, None, "passive"), (True, None, None), (False, "active", "active")]
)
def test_threads_of_torch_wait_passively_where_it_is_not_imported_yet(monkeypatch, imported, policy, after):
    assert regard.load
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if policy is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    if not imported:
        monkeypatch.delitem(sys.modules, "torch")
    assert regard.load
    assert os.environ.get("OMP_WAIT_POLICY") == after
    if policy is None and after is not None:
        del os.environ["OMP_WAIT_POLICY"]
