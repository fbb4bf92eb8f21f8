import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import plan as here
from regard.kernels.triton.additive.arguments import ScoreInputs, Tiles
from regard.kernels.triton.additive.plan import Plan, build_plan


def sides(queries, keys, hidden, many=1, dtype=torch.bfloat16):
    query, key = torch.empty(many, 1, queries, hidden, dtype=dtype), torch.empty(many, 1, keys, hidden, dtype=dtype)
    return ScoreInputs(query, key, query[0, 0, :1]), torch.empty(many, queries, keys)


SINGLE, HALF = torch.float32, torch.bfloat16


def test_queries_are_shared_until_the_processors_are_busy_or_there_is_no_room(monkeypatch):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    tiles = Tiles()
    assert build_plan(*sides(1024, 1024, 256, 8), tiles, False, 1 << 30) == Plan(32, 2, 1, 1024, SINGLE)
    assert build_plan(*sides(1024, 1024, 256), tiles, False, 1 << 30) == Plan(32, 2, 4, 256, SINGLE)
    assert build_plan(*sides(32, 1024, 256), tiles, False, 1 << 30) == Plan(32, 2, 1, 32, SINGLE)
    assert build_plan(*sides(1024, 1024, 256, dtype=SINGLE), tiles, False, 1 << 30) == Plan(32, 4, 2, 512, SINGLE)


def test_parts_of_a_gradient_that_one_program_has_the_queries_of_need_room_too(monkeypatch):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    for room, dtype in ((36 << 20, SINGLE), (35 << 20, HALF)):
        assert build_plan(*sides(1024, 1024, 4096), Tiles(), False, room) == Plan(32, 2, 1, 1024, dtype)


@pytest.mark.parametrize(
    ("mebibytes", "shared", "dtype"), [(10.0, 4, SINGLE), (9.9, 4, HALF), (6.0, 4, HALF), (5.9, 3, HALF), (0.0, 1, HALF)]
)
def test_parts_are_single_unless_more_of_half_precision_have_room(monkeypatch, mebibytes, shared, dtype):
    """A mebibyte is a part of either gradient in single precision, of which there are two for the queries; dscores are four.

    Of half precision the first part of either needs none.
    """
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    found = build_plan(*sides(1024, 1024, 256), Tiles(), False, int(mebibytes * 2**20))
    assert (found.tiles, found.shared, found.dtype) == (2, shared, dtype)


def test_parts_that_are_added_to_what_is_there_need_their_own_room(monkeypatch):
    monkeypatch.setattr(here, "count_multiprocessors", lambda device: 132)
    found = [build_plan(*sides(1024, 1024, 256), Tiles(), False, 6 << 20, adds).shared for adds in (False, True)]
    assert found == [4, 3]
