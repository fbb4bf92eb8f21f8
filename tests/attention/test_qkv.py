import torch

from regard.attention.qkv import is_interleaved, split_qkv


def test_parts_of_a_product_are_its_neighbours():
    whole = torch.arange(12.0).view(1, 2, 6)
    parts = split_qkv(whole, 3)
    assert [each.flatten().tolist() for each in parts] == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]
    assert is_interleaved(parts)
    assert not is_interleaved(parts[:2])  # of rows of three
    assert not is_interleaved((parts[1], parts[0], parts[2]))
    assert not is_interleaved(tuple(each.contiguous() for each in parts))


def test_gradients_are_those_of_a_cut_wherever_they_lie():
    whole, flow = torch.randn(2, 3, 8, requires_grad=True), torch.randn(2, 3, 8)
    for given in (flow.chunk(2, -1), [each.contiguous() for each in flow.chunk(2, -1)]):
        assert torch.equal(torch.autograd.grad(split_qkv(whole, 2), whole, given)[0], flow)


def test_gradients_that_lie_side_by_side_are_not_copied():
    whole, flow = torch.randn(2, 3, 8, requires_grad=True), torch.randn(2, 3, 8)
    found = torch.autograd.grad(split_qkv(whole, 2), whole, flow.chunk(2, -1))[0]
    assert found.data_ptr() == flow.data_ptr()
