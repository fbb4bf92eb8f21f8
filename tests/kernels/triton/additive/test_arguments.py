import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.runtime import capability
from regard.kernels.triton.additive import arguments
from regard.kernels.triton.additive.arguments import (
    Dropout,
    MaskArguments,
    ScoreInputs,
    Tiles,
    count_keys_per_thread,
    count_multiprocessors,
    limit_registers,
    round_up,
    split_keys,
    uses_tensor_cores,
)


def test_bits_come_with_how_far_apart_they_stand():
    bits, kinds = torch.zeros(2, 1, 40, 3, dtype=torch.int32), torch.zeros(2, 1, 2, 3, dtype=torch.int8)
    told = MaskArguments(bits=bits, kinds=kinds).arguments()
    assert told["bits"] is bits
    assert told["kinds"] is kinds
    assert [told[name] for name in ("bit_b", "bit_h", "bit_t", "kind_b", "kind_h", "kind_t")] == [120, 0, 3, 6, 0, 3]
    assert (told["MASK"], told["KEEP"], told["OFFSETS"]) == (True, False, False)
    assert not MaskArguments().arguments()["MASK"]


def test_a_scope_hides_something_or_nothing():
    assert not MaskArguments(offset=3).hides
    assert MaskArguments(ahead=0).hides
    assert MaskArguments(behind=5).hides
    assert MaskArguments(keep=torch.ones(1, 2, dtype=torch.bool)).hides


def test_what_dropout_leaves_grows():
    assert Dropout(0.75).arguments()["scale"] == 4
    assert Dropout(1.0).arguments()["scale"] == 0
    assert not Dropout().arguments()["DROPOUT"]


def test_heads_find_the_heads_of_their_keys_through_the_batch():
    sides = ScoreInputs.of(torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8), torch.ones(1, 8))
    assert sides.sources(range(8)) == range(4)
    assert sides.sources(range(1, 2)) == range(1)
    assert sides.sources(range(3, 6)) == range(1, 3)


def test_lengths_are_padded_so_that_every_kernel_finds_whole_tiles():
    assert [round_up(count, 16) for count in (0, 1, 16, 17)] == [0, 16, 16, 32]
    tiles = Tiles(rows=16, columns=64, both_rows=32, four_rows=16, four_columns=64)
    assert (tiles.tall, tiles.wide) == (32, 64)


def test_tiles_of_the_way_back_leave_the_fewest_places_empty_and_are_the_fewest():
    tiles = Tiles(both=16)

    def dealt(keys, hides=False, dtype=torch.bfloat16):
        across, count = split_keys(keys, tiles, hides, dtype)
        return across * count_keys_per_thread(tiles, dtype), count

    assert [dealt(keys) for keys in (64, 256, 320, 1024, 2048, 8192)] == [
        (64, 1), (256, 1), (128, 3), (512, 2), (512, 4), (512, 16),
    ]  # fmt: skip
    assert [dealt(keys, hides=True) for keys in (256, 1024, 8192)] == [(128, 2), (256, 4), (512, 16)]
    assert dealt(1024, dtype=torch.float32) == (256, 4)


def test_four_units_at_a_time_are_for_many_queries_in_bfloat16(monkeypatch):
    def asked(queries, query, key):
        given = torch.empty(1, 1, queries, 2, dtype=query), torch.empty(1, 1, 3, 2, dtype=key)
        return uses_tensor_cores(ScoreInputs(*given, torch.empty(1, 2)), Tiles(four_least=33))

    half, other, single = torch.bfloat16, torch.float16, torch.float32
    kinds = (33, half, half), (32, half, half), (33, half, single), (33, other, other), (33, single, single)
    assert [asked(*each) for each in kinds] == [True, False, False, False, False]
    monkeypatch.setattr(arguments, "supports_tf32", lambda device: False)
    assert not asked(33, half, half)


def test_registers_are_limited_where_the_compiler_is_nvidias(monkeypatch):
    assert limit_registers(96) == {}  # the interpreter has none
    monkeypatch.setattr(capability, "INTERPRETED", False)
    assert limit_registers(96) == {"maxnreg": 96}
    assert limit_registers(None) == {}


def test_a_cpu_counts_as_two_processors():
    assert count_multiprocessors(torch.device("cpu")) == 2
