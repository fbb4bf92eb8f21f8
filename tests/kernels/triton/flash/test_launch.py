import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.launch import Plan, Selection, StatisticsRequest

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_of_what_was_not_asked_for_there_is_nothing():
    query, keys, values = torch.randn(2, 3, 4, 5), torch.randn(2, 1, 6, 5), torch.randn(2, 1, 6, 7)
    found = launch.allocate_output(query, keys, values, StatisticsRequest())
    assert found.context.shape == (2, 3, 4, 7)
    assert found.lse.shape == (2, 3, 4)
    assert [each.numel() for each in found[2:]] == [0] * 6
    asked = launch.allocate_output(query, keys, values, StatisticsRequest(True, True, 2, True, True, 2))
    assert asked.measured.shape == (launch.STATISTICS, 2, 3, 4)
    assert asked.best.shape == asked.best_keys.shape == (2, 3, 4, 2)
    assert asked.received.shape == asked.uniform.shape == (2, 3, 6)


def test_the_size_of_a_tile_changes_nothing_but_roundings():
    query, keys, values = torch.randn(1, 1, 17, 3), torch.randn(1, 1, 33, 3), torch.randn(1, 1, 33, 2)
    first, second = (
        launch.forward(
            query, keys, values, PLAN._replace(tiles=tiles, causal=True, offset=16), StatisticsRequest(received=True)
        )
        for tiles in ([16, 16, 4, 1], [32, 64, 4, 1])
    )
    torch.testing.assert_close(first.context, second.context)
    torch.testing.assert_close(first.received, second.received)


def test_weights_of_no_query_are_none():
    data = torch.randn(1, 2, 3, 4)
    assert launch.compute_weights(data, data, None, PLAN, Selection(torch.tensor([], dtype=torch.int64))).shape == (
        1,
        2,
        0,
        3,
    )
