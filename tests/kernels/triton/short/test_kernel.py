import math
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/transformer.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.short.operator import attend_short, backward_operator


def test_one_query_and_two_keys_can_be_worked_by_hand():
    query, keys = torch.tensor([[[[1.0]]]]), torch.tensor([[[[0.0], [math.log(3)]]]])
    values = torch.tensor([[[[4.0], [8.0]]]])
    context = attend_short(query, keys, values, None, None, None, False, 0, 1.0)  # shares 1/4 and 3/4
    assert context.item() == pytest.approx(7.0)
    d_query, d_keys, d_values = backward_operator(
        torch.ones(1, 1, 1, 1), query, keys, values, None, None, None, False, 0, 1.0
    )
    assert d_values.flatten().tolist() == pytest.approx([0.25, 0.75])
    assert d_keys.flatten().tolist() == pytest.approx([-0.75, 0.75])  # P (dP - 7) = 1/4 (4 - 7), 3/4 (8 - 7)
    assert d_query.item() == pytest.approx(0.75 * math.log(3))


def test_repeats_are_equal_to_the_last_bit():
    query, keys, values, flow = (torch.randn(2, 3, 8, 16) for _ in range(4))
    first = backward_operator(flow, query, keys, values, None, None, None, True, 0, 0.25)
    for one, other in zip(first, backward_operator(flow, query, keys, values, None, None, None, True, 0, 0.25), strict=True):
        assert torch.equal(one, other)
