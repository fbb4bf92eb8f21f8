import math
from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.runtime import capability
from regard.kernels.triton.additive import launch, launch_backward, operator, split_k
from regard.kernels.triton.additive.arguments import Dropout, MaskArguments, Tiles


def test_one_query_can_be_worked_by_hand():
    query, key = torch.tensor([[[[1.0]]]]), torch.tensor([[[[0.0], [-1.0]]]])
    value, v = torch.tensor([[[[1.0], [3.0]]]]), torch.tensor([[2.0]])
    context, weights = operator.attention(query, key, value, v, weights=torch.float32)
    share = 1 / (1 + math.exp(-2 * math.tanh(1)))
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([share, 1 - share]))
    torch.testing.assert_close(context[0, 0, 0], torch.tensor([3 - 2 * share]))


@pytest.mark.parametrize("ahead", [0, 60])
def test_one_query_reads_what_it_reads_among_others(ahead):
    query, key, value, v = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 50, 3), torch.randn(1, 1, 50, 5), torch.randn(1, 3)
    both = operator.attention(query, key, value, v, MaskArguments(offset=20, ahead=ahead), weights=torch.float32)
    alone = operator.attention(query[:, :, 1:], key, value, v, MaskArguments(offset=21, ahead=ahead), weights=torch.float32)
    for found, expected in zip(alone, both, strict=True):
        torch.testing.assert_close(found, expected[:, :, 1:])


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_however_few_keys_are_read_at_a_time_and_under_way_one_query_reads_the_same(monkeypatch, columns):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 1, 40), torch.randn(3, 1, 26, 40), torch.randn(3, 2, 26, 5)
    told = MaskArguments(torch.arange(26) < torch.tensor([[26], [9], [0]])), Dropout(0.3, torch.tensor([5]))
    leaves = [each.requires_grad_() for each in (query, key, value, torch.ones(1, 40))]

    def run(**changed):
        monkeypatch.setattr(operator, "TILES", replace(operator.TILES, step_parts=3, **changed))
        found = operator.attention(*leaves, *told, weights=torch.float32)
        return *found, *torch.autograd.grad(found[0].square().sum(), leaves)

    for ours, others in zip(run(step_bytes=columns * 64 * 4), run(step_bytes=4 * 64 * 4, step_stages=3), strict=True):
        torch.testing.assert_close(ours, others, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "heads", "keys", "hidden", "size", "columns", "warps"),
    [
        (torch.bfloat16, 64, 2, 1024, 1024, 8, 4),
        (torch.bfloat16, 64, 2, 512, 300, 8, 2),
        (torch.bfloat16, 64, 2, 16, 16, 8, 1),
        (torch.bfloat16, 64, 2, 1025, 8, 4, 4),
        (torch.float32, 64, 2, 8, 1024, 4, 2),
        (torch.float32, 64, 2, 9000, 8, 1, 8),
        (torch.float32, 64, 2, 8, 99000, 1, 16),
        (torch.bfloat16, 4, 4096, 256, 256, 32, 4),
        (torch.bfloat16, 5, 4096, 256, 256, 8, 1),
        (torch.bfloat16, 4, 4095, 256, 256, 8, 1),
    ],
)
def test_a_block_is_as_many_keys_as_its_bytes_allow_by_as_many_warps_as_have_enough_of_them(
    monkeypatch, dtype, heads, keys, hidden, size, columns, warps
):
    monkeypatch.setattr(launch, "count_multiprocessors", lambda device: 132)
    key, value = (torch.empty(1, 1, keys, each, dtype=dtype) for each in (hidden, size))
    assert launch.select_block(heads, key, value, Tiles()) == (columns, warps)


def test_the_last_program_of_a_head_is_the_only_one_launched(monkeypatch):
    started, start = [], launch.launch_cached
    monkeypatch.setattr(
        launch, "launch_cached", lambda program, *given, **named: started.append(program) or start(program, *given, **named)
    )
    operator.attention(torch.randn(1, 1, 1, 3), torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 3), torch.ones(1, 3))
    assert started == [split_k.split_kernel]


def test_there_may_be_more_heads_than_the_second_axis_of_a_grid_has_programs(monkeypatch):
    grids = []
    for module in (launch, launch_backward):
        monkeypatch.setattr(module, "launch_cached", lambda program, grid, *given, **named: grids.append(grid))
    query, key, value = (torch.zeros(70_000, 1, time, 1, requires_grad=True) for time in (1, 2, 2))
    operator.attention(query, key, value, torch.ones(1, 1))[0].sum().backward()
    assert grids == [(70_000, 1, 1)] * 2


@pytest.mark.parametrize(
    ("kib", "dtype", "size", "expected"),
    [
        (64, torch.float16, 64, 1),
        (99, torch.float16, 64, 2),
        (99, torch.float32, 4096, 2),
        (99, torch.float32, 9000, 1),
        (227, torch.float32, 9000, 2),
    ],
)
def test_blocks_are_under_way_as_far_as_shared_memory_holds_them(monkeypatch, kib, dtype, size, expected):
    monkeypatch.setattr(capability, "find_shared_memory", lambda device: kib << 10)
    data = torch.empty(1, 1, 2, size, dtype=dtype)
    columns, _ = launch.select_block(64, data, data, Tiles())
    assert launch.count_stages(columns, data, data, Tiles()) == expected
