import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import launch_scores, operator
from regard.kernels.triton.additive.arguments import MaskArguments, ScoreInputs, Tiles
from regard.kernels.triton.additive.chunks import Chunk
from regard.kernels.triton.additive.launch_scores import compare_chunk, count_units_per_program, pad_vector, select_tile


@pytest.mark.parametrize(("dtype", "parts"), [(torch.float32, 3), (torch.bfloat16, 2)])
def test_the_scores_of_a_chunk_add_up_from_parts_of_the_hidden_units(monkeypatch, dtype, parts):
    monkeypatch.setattr(launch_scores, "count_multiprocessors", lambda device: 2 if dtype == torch.float32 else 4)
    query, key, v = (each.to(dtype) for each in (torch.randn(1, 3, 5, 11), torch.randn(1, 3, 7, 11), torch.randn(1, 11)))
    found = compare_chunk(
        ScoreInputs.of(query, key, v), Chunk(range(1, 3), range(2, 5)), MaskArguments().arguments(), operator.TILES
    )
    assert found.scores.shape == (parts, 2, 16, 16)
    query, key, v = query.float(), key.float(), v.float()
    expected = (torch.tanh(query[:, 1:, 2:, None] + key[:, 1:, None]) @ v[0])[0]
    torch.testing.assert_close(found.scores.sum(0)[:, :3, :7], expected)


def test_heads_are_compared_by_several_launches_where_one_keeps_the_processors_busy(monkeypatch):
    query, key, v = torch.randn(5, 1, 20, 3), torch.randn(5, 1, 7, 3), torch.randn(1, 3)
    seen, launch = [], launch_scores.launch_scores
    monkeypatch.setattr(
        launch_scores, "launch_scores", lambda sides, chunk, *rest: seen.append(chunk) or launch(sides, chunk, *rest)
    )
    monkeypatch.setattr(launch_scores, "count_heads_per_launch", lambda *told: 2)
    found = compare_chunk(
        ScoreInputs.of(query, key, v), Chunk(range(1, 5), range(20)), MaskArguments().arguments(), operator.TILES
    )
    assert seen == [Chunk(range(1, 3), range(20)), Chunk(range(3, 5), range(20))]
    expected = torch.tanh(query[1:, 0, :, None] + key[1:, 0, None]) @ v[0]
    torch.testing.assert_close(found.scores.sum(0)[:, :20, :7], expected)


def test_hidden_units_are_split_where_there_are_few_tiles():
    device, tiles = torch.device("cpu"), Tiles(pairs=4)
    pairs, fours = select_tile(64, tiles, fours=False), select_tile(64, tiles, fours=True)
    assert [count_units_per_program(512, programs, pairs, tiles, device) for programs in (8, 3, 1)] == [512, 256, 64]
    assert count_units_per_program(20, 1, pairs, tiles, device) == 8
    assert [count_units_per_program(512, programs, fours, tiles, device) for programs in (2, 1)] == [512, 256]
    assert count_units_per_program(21, 1, fours, tiles, device) == 12


def test_a_tile_is_half_as_wide_where_keys_end_in_its_first_half():
    assert [select_tile(wide, Tiles(), fours=True).columns for wide in (64, 128, 192, 256)] == [64, 128, 64, 128]


def test_a_vector_is_padded_to_whole_parts_and_begins_where_a_word_may():
    v = torch.arange(8, dtype=torch.bfloat16)[None]
    assert pad_vector(v, 8) is v
    assert pad_vector(v, 12).tolist() == [[*range(8), 0, 0, 0, 0]]
    moved = v[:, 1:5]
    assert pad_vector(moved, 4).data_ptr() % 8 == 0
    assert pad_vector(moved, 4).tolist() == [[1, 2, 3, 4]]
