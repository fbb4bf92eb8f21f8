import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decode.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.decode import launch
from regard.kernels.triton.flash.arguments import Plan

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_the_number_of_parts_follows_from_the_keys_and_the_heads():
    """Two processors stand in for a GPU's: eight programs among the heads of all rows, of whole tiles each."""
    assert launch.count_splits(torch.empty(1, 1, 160, 2), PLAN) == 5  # 10 tiles, two for each
    assert launch.count_splits(torch.empty(2, 4, 160, 2), PLAN) == 1
    assert launch.count_splits(torch.empty(1, 1, 3, 2), PLAN) == 1


def test_no_more_parts_are_made_than_one_program_joins(monkeypatch):
    monkeypatch.setattr(launch, "MAX_SPLITS", 2)
    assert launch.count_splits(torch.empty(1, 1, 160, 2), PLAN) == 2


def test_the_number_of_parts_changes_nothing_but_roundings(monkeypatch):
    query, keys, values = torch.randn(1, 2, 1, 3), torch.randn(1, 1, 70, 3), torch.randn(1, 1, 70, 2)
    plan = PLAN._replace(causal=True, offset=40)
    found = []
    for count in (1, 2, 7):
        monkeypatch.setattr(launch, "count_splits", lambda keys, plan, count=count: count)
        found.append(launch.run_step(query, keys, values, plan, wants_weights=True))
    for each in found[1:]:
        torch.testing.assert_close(each.context, found[0].context)
        torch.testing.assert_close(each.weights, found[0].weights)


def test_where_room_is_short_a_program_takes_fewer_keys_at_a_time(monkeypatch):
    query, keys, values = torch.randn(1, 20, 1, 3), torch.randn(1, 1, 70, 3), torch.randn(1, 1, 70, 2)
    plan, asked = PLAN._replace(tiles=[16, 64, 4, 3]), []
    expected = launch.run_step(query, keys, values, plan, wants_weights=False).context

    def largest(start, sets, need, device, kind):
        asked.extend((tiles, need(tiles)) for tiles in sets)
        start(sets[-1])

    monkeypatch.setattr(launch, "launch_largest", largest)
    torch.testing.assert_close(launch.run_step(query, keys, values, plan, wants_weights=False).context, expected)
    assert [tiles for tiles, _ in asked] == [[32, 64, 4, 3], [32, 64, 4, 1], [32, 32, 4, 1], [32, 16, 4, 1]]
    assert asked[-1][1] == 4 * (32 * 16 + 16 * 16 + 32 * 16)  # queries, keys, shares, of four bytes each
