import math
import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.launch import Plan, StatisticsRequest

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""

TWO = torch.tensor([[[[0.0], [math.log(3)]]]])
"""Keys that a query of 1 gives shares of 1/4 and 3/4."""


def test_one_query_and_two_keys_can_be_worked_by_hand():
    found = launch.forward(
        torch.ones(1, 1, 1, 1), TWO, torch.tensor([[[[4.0], [8.0]]]]), PLAN, StatisticsRequest(True, True, 2, top=2)
    )
    assert found.context.item() == pytest.approx(7)
    assert found.lse.item() == pytest.approx(2)  # log2 of 1 + 3
    entropy, largest, mean, spread = found.measured.flatten().tolist()
    assert entropy == pytest.approx(math.log(4) - 0.75 * math.log(3))
    assert (largest, mean) == pytest.approx((0.75, 0.75))
    assert spread == pytest.approx(math.sqrt(3) / 4)
    assert found.argmax.item() == 1
    assert found.best_keys.flatten().tolist() == [1, 0]
    assert found.best.flatten().tolist() == pytest.approx([0.75, 0.25])


def test_what_two_keys_receive_can_be_worked_by_hand():
    query = torch.tensor(
        [[[[1.0], [0.0]]]]
    )  # the second query spreads itself evenly, and under a causal scope both see key 0
    found = launch.forward(query, TWO, TWO, PLAN, StatisticsRequest(received=True, uniform=True))
    torch.testing.assert_close(found.received.flatten(), torch.tensor([0.75, 1.25]))
    torch.testing.assert_close(found.uniform.flatten(), torch.tensor([1.0, 1.0]))
    causal = launch.forward(query, TWO, TWO, PLAN._replace(causal=True), StatisticsRequest(received=True, uniform=True))
    torch.testing.assert_close(causal.received.flatten(), torch.tensor([1.5, 0.5]))
    torch.testing.assert_close(causal.uniform.flatten(), torch.tensor([1.5, 0.5]))


def test_scores_that_are_as_low_as_numbers_go_are_scores_all_the_same():
    low, values = torch.full((1, 1, 40, 1), -1.5e38), torch.arange(40.0).view(1, 1, 40, 1)
    found = launch.forward(torch.ones(1, 1, 1, 1), low, values, PLAN, StatisticsRequest(True, True, 1))
    assert found.context.item() == pytest.approx(19.5)
    assert found.measured.flatten()[:3].tolist() == pytest.approx([math.log(40), 1 / 40, 19.5])
    assert found.argmax.item() == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_score_that_is_no_number_leaves_a_key_all_the_same():
    keys = torch.zeros(1, 1, 40, 1)
    keys[..., 3, 0] = torch.inf
    assert launch.forward(torch.ones(1, 1, 1, 1), keys, keys, PLAN, StatisticsRequest(peak=True)).argmax.item() == 0


def test_of_equal_scores_the_first_key_is_the_best_over_tiles_too():
    data = torch.zeros(1, 1, 40, 1)
    assert launch.forward(data[:, :, :1], data, data, PLAN, StatisticsRequest(peak=True)).argmax.item() == 0
