import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/parity.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.monotonic import kernel

EVEN = torch.full((1, 2, 3), 0.5)
CARRY = torch.tensor([[[0.0, 0.5, 0.5]] * 2])


def test_a_walk_by_hand():
    """From the first key on with even chances: 1/2, 1/4, 1/8, and from there once more."""
    found, reached = torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)
    kernel.forward[(1,)](EVEN, CARRY, torch.tensor([1.0, 0.0, 0.0]), found, reached, 2, 3, K=4)
    assert found.tolist() == [[[1 / 2, 1 / 4, 1 / 8], [1 / 4, 1 / 4, 3 / 16]]]
    assert reached.tolist() == [[[1, 1 / 2, 1 / 4], [1 / 2, 1 / 2, 3 / 8]]]


def test_the_way_back_by_hand():
    """What flows into the last query's last key comes from every key before it, by half for each step."""
    flowing = torch.zeros(1, 2, 3)
    flowing[0, 1, 2] = 1.0
    reached = torch.tensor([[[1, 1 / 2, 1 / 4], [1 / 2, 1 / 2, 3 / 8]]])
    d_stop, d_carry, d_start = torch.zeros(1, 2, 3), torch.zeros(1, 2, 3), torch.zeros(3)
    kernel.backward[(1,)](flowing, EVEN, CARRY, reached, d_stop, d_carry, d_start, 2, 3, K=4)
    assert d_stop.tolist() == [[[1 / 8, 1 / 8, 1 / 8], [0, 0, 3 / 8]]]
    assert d_carry.tolist() == [[[0, 1 / 4, 1 / 8], [0, 1 / 8, 1 / 4]]]
    assert d_start.tolist() == [3 / 16, 1 / 4, 1 / 4]


def test_keys_behind_the_last_are_neither_read_nor_written():
    stop, carry, start = (
        torch.cat((each, torch.full((1,), torch.nan))) for each in (EVEN.view(-1), CARRY.view(-1), EVEN[0, 0])
    )
    found, reached = torch.full((7,), -1.0), torch.full((7,), -1.0)
    kernel.forward[(1,)](stop, carry, start, found, reached, 2, 3, K=8)
    assert found[:6].isfinite().all()
    assert (found[6], reached[6]) == (-1, -1)
