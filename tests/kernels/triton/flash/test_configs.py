import pytest

from regard.kernels.triton.flash.configs import (
    TILE_SIZES,
    estimate_shared_memory,
    estimate_smallest_memory,
    list_smaller,
    round_up,
)

COMPILED = {
    ("forward", 64, 64, 64): 48,
    ("sum_columns", 64, 64, 64): 32,
    ("write_dq", 64, 64, 64): 72,
    ("write_dkv", 64, 64, 64): 96,
    ("write_dbias", 64, 64, 64): 48,
    ("weights", 16, 64, 64): 20,
    ("forward", 64, 32, 128): 56,
    ("sum_columns", 64, 32, 128): 48,
    ("write_dq", 64, 32, 128): 104,
    ("write_dkv", 64, 32, 128): 112,
    ("write_dbias", 64, 32, 128): 96,
    ("weights", 16, 64, 128): 40,
    ("forward", 32, 32, 256): 68,
    ("sum_columns", 32, 32, 256): 64,
    ("write_dq", 32, 32, 256): 132,
    ("write_dkv", 32, 32, 256): 136,
    ("write_dbias", 32, 32, 256): 192,
    ("weights", 16, 64, 256): 80,
    ("forward", 16, 16, 256): 33,
    ("write_dq", 16, 16, 256): 64,
    ("write_dkv", 16, 16, 256): 66,
    ("write_dbias", 16, 16, 256): 96,
    ("weights", 16, 16, 256): 32,
}
"""KiB by program, queries, keys and size of a head, in single precision, by Triton 3.6 for sm_75, which never loads ahead."""


@pytest.mark.parametrize(("case", "kib"), COMPILED.items(), ids=str)
def test_what_a_program_needs_is_what_triton_compiled_it_to_or_a_little_more(case, kib):
    program, tall, wide, size = case
    assert kib <= estimate_shared_memory(program, [tall, wide, 4, 1], size, size, 4) / 1024 <= kib + 8


def test_sets_come_largest_first_and_end_with_what_every_gpu_can_multiply():
    areas = [tall * wide for tall, wide, _, _ in TILE_SIZES]
    assert areas == sorted(areas, reverse=True)
    assert TILE_SIZES[-1] == [16, 16, 4, 1]
    assert list_smaller([16, 64, 4, 2]) == [[16, 64, 4, 2], [16, 16, 4, 1]]
    assert list_smaller([128, 64, 4, 3]) == TILE_SIZES


def test_the_smallest_tiles_fit_everywhere_but_for_the_widest_heads_on_the_oldest_gpus():
    turing, ada = 64 << 10, 99 << 10
    assert (
        estimate_smallest_memory("forward", 160, 256)
        < turing
        < estimate_smallest_memory("write_dkv", 160, 256)
        < estimate_smallest_memory("write_dbias", 160, 256)
        < ada
    )
    assert estimate_smallest_memory("write_dbias", 128, 80) < turing


def test_half_precision_counts_as_single_which_is_what_old_gpus_make_of_it():
    assert (
        65 << 10 <= estimate_smallest_memory("write_dkv", 256, 256) <= 66 << 10
    )  # compiled for sm_75 it is 65 KiB in float16


def test_a_block_is_a_power_of_two_of_16_at_least():
    assert [round_up(size) for size in (1, 16, 17, 128, 129)] == [16, 16, 32, 128, 256]
