import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/transformer.py checks on a GPU", allow_module_level=True)

from regard.attention.multihead import is_interleaved as apart_side_by_side
from regard.kernels.triton.short.operator import (
    allocate_gradients,
    allocate_output,
    attend_short,
    forward_operator,
    make_dense,
)


@pytest.mark.unhooked
def test_what_it_promises_the_compiler_about_shapes_is_what_it_gives():
    query, keys, values = (torch.randn(1, 2, count, 4, requires_grad=True) for count in (3, 5, 5))
    keep = torch.ones(1, 5, dtype=torch.bool)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    documents = torch.ones(1, 3, dtype=torch.long), torch.ones(1, 5, dtype=torch.long)
    for packed in ((None, None), documents):
        torch.library.opcheck(forward_operator, (query, keys, values, keep, *packed, True, 2, 0.5), test_utils=tests)


def test_room_has_its_heads_side_by_side():
    made = allocate_output(torch.empty(2, 3, 5, 7))
    assert made.shape == (2, 3, 5, 7)
    assert made.stride() == (105, 7, 21, 1)
    assert allocate_output(made, 4).shape == (2, 3, 5, 4)


def test_only_a_last_axis_with_gaps_is_copied():
    data = torch.randn(2, 3, 5, 7)
    assert make_dense(data.transpose(1, 2)).data_ptr() == data.data_ptr()
    assert make_dense(data.transpose(2, 3)).stride(3) == 1


def test_gradients_lie_as_their_inputs_do():
    three = [each.view(2, 5, 3, 4).transpose(1, 2).requires_grad_() for each in torch.randn(2, 5, 36).chunk(3, -1)]
    found = torch.autograd.grad(attend_short(*three, None, None, None, False, 0, 0.5).sum(), three)
    assert apart_side_by_side(tuple(each.transpose(1, 2).flatten(2) for each in found))
    query, keys, values = (torch.randn(2, 3, count, 4) for count in (6, 5, 5))
    assert [each.stride() for each in allocate_gradients(query, keys, values)] == [
        allocate_output(each).stride() for each in (query, keys, values)
    ]
    two = [each.view(2, 5, 3, 4).transpose(1, 2) for each in torch.randn(2, 5, 24).chunk(2, -1)]
    made = allocate_gradients(query, *two)
    assert made[0].shape == query.shape
    assert apart_side_by_side(tuple(each.transpose(1, 2).flatten(2) for each in made[1:]))
