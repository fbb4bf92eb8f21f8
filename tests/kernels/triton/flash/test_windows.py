import pytest
import torch

from regard.kernels.triton.flash.arguments import Plan
from regard.kernels.triton.flash.windows import CONFIGS, allocate_buffers, is_even, select_config

TILES = [64, 64, 4, 3]


@pytest.mark.parametrize("program", CONFIGS)
def test_narrow_heads_have_tiles_and_registers_of_their_own(program):
    narrow = torch.empty(1, 1, 2, 64, dtype=torch.bfloat16)
    tiles, registers = CONFIGS[program]
    assert select_config(program, TILES, narrow, narrow) == (tiles, {"maxnreg": registers})
    assert select_config(program, TILES, narrow, torch.empty(1, 1, 2, 65, dtype=torch.bfloat16)) == (TILES, {})
    assert select_config(program, TILES, narrow.float(), narrow.float()) == (TILES, {})
    assert select_config(program, [32, 32, 4, 1], narrow, narrow) == ([32, 32, 4, 1], {})


def test_what_knows_no_registers_is_told_of_none(monkeypatch):
    narrow = torch.empty(1, 1, 2, 64, dtype=torch.bfloat16)
    monkeypatch.setattr(torch.version, "hip", "6.3")
    assert select_config("forward", TILES, narrow, narrow) == (CONFIGS["forward"][0], {})


def test_keys_are_even_where_windows_are_placed_among_whole_tiles_of_them():
    centres, keep = torch.zeros(1, 3), torch.ones(1, 64, dtype=torch.bool)
    plan = Plan(None, centres, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, TILES)
    keys = torch.empty(1, 1, 64, 4)
    assert is_even(keys, plan, [64, 32, 4, 3])
    assert not is_even(keys[:, :, 1:], plan, [64, 32, 4, 3])
    assert not is_even(keys, plan._replace(keep=keep), [64, 32, 4, 3])
    assert not is_even(keys, plan._replace(centres=None), [64, 32, 4, 3])


def test_there_is_room_for_whole_tiles():
    query, gradient = torch.empty(2, 3, 65, 4, dtype=torch.half), torch.empty(2, 3, 65, 5, dtype=torch.half)
    found = allocate_buffers(query, gradient, torch.empty(2, 3, 65))
    assert [each.shape for each in found] == [(2, 3, 128, 4), (2, 3, 128, 5), (2, 2, 3, 128)]
    assert [each.dtype for each in found] == [torch.half, torch.half, torch.float32]
