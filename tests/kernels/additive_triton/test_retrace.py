import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import retrace


def test_half_precision_is_multiplied_in_single():
    left, right = torch.full((1, 1, 300), 1.0078125, dtype=torch.bfloat16), torch.ones(1, 300, 1, dtype=torch.bfloat16)
    assert retrace.product(left, right).item() == 300 * 1.0078125


def test_the_gradient_of_values_is_what_flows_by_shares_alone_or_with_that_of_others():
    place, shares, flow = torch.ones(1, 2, 1), torch.tensor([[[0.5, 0.0], [0.25, 1.0]]]), torch.tensor([[[2.0], [4.0]]])
    retrace.weigh(place, shares, flow, several=True)
    assert place.flatten().tolist() == [2.0, 5.5]
    retrace.weigh(place, shares, flow, several=False)
    assert place.flatten().tolist() == [1.0, 4.5]
