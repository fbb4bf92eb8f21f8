import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/simplex.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.entmax import launch
from regard.kernels.triton.entmax.launch import Alpha
from regard.kernels.triton.flash.arguments import Plan

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""


def test_outputs_are_the_context_and_three_numbers_of_each_query():
    context, edges = launch.allocate_output(torch.randn(2, 3, 4, 5), torch.randn(2, 1, 6, 7).half())
    assert (context.shape, context.dtype) == ((2, 3, 4, 7), torch.float16)
    assert (edges.shape, edges.dtype) == ((3, 2, 3, 4), torch.float32)


def test_sparsemax_and_entmax_of_one_and_a_half_have_programs_without_logarithms():
    data = torch.randn(1, 1, 2, 3)
    bends = [Alpha(2.0), Alpha(1.5), Alpha(1.4), Alpha(1.5, torch.tensor([1.5]))]
    assert [launch._build_compile_arguments(data, PLAN, bend)["POWER"] for bend in bends] == [1, 2, 0, 0]


def test_the_size_of_a_tile_changes_nothing_but_roundings():
    query, keys, values = torch.randn(1, 1, 17, 3), torch.randn(1, 1, 33, 3), torch.randn(1, 1, 33, 2)
    first, second = (
        launch.forward(query, keys, values, PLAN._replace(tiles=tiles, causal=True, offset=16), Alpha(1.5))
        for tiles in ([16, 16, 4, 1], [32, 64, 4, 1])
    )
    torch.testing.assert_close(first.context, second.context)
    torch.testing.assert_close(first.edges, second.edges)
