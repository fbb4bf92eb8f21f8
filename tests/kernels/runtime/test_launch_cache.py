import pytest
import torch

from regard.kernels.runtime import launch_cache


class Compiled:
    """What Triton gives for a program that it compiled."""

    def __init__(self):
        self.started = []

    def __getitem__(self, grid):
        return lambda *values: self.started.append((grid, values))


class Program:
    arg_names = ("data", "count", "TILE")

    def __init__(self, compiles=True):
        self.asked, self.compiles, self.fn = [], compiles, object()

    def __hash__(self):
        raise AssertionError("Triton hashes a program by its source, behind a lock")

    def __getitem__(self, grid):
        def run(*values, **options):
            self.asked.append((grid, values, options))
            return Compiled() if self.compiles else None

        return run


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(launch_cache, "CACHE", {})


def given(data, count=3):
    return {"TILE": 16, "unasked": None, "count": count, "data": data}


def test_a_program_is_asked_for_once_and_started_again_with_other_data():
    program, data, other = Program(), torch.ones(4), torch.ones(4)
    launch_cache.launch_cached(program, (2, 1, 1), given(data), num_warps=4)
    assert program.asked == [((2, 1, 1), (data, 3, 16), {"num_warps": 4})]
    launch_cache.launch_cached(program, (5, 1, 1), given(other), num_warps=4)
    (compiled,) = launch_cache.CACHE.values()
    grid, values = compiled.started[0]
    assert grid == (5, 1, 1)
    assert values[0] is other
    assert values[1:] == (3, 16)


DIFFERENT = {
    "a number": (lambda data: given(data, 4), 4),
    "a precision": (lambda data: given(data.half()), 4),
    "an alignment": (lambda data: given(data[1:]), 4),
    "an option": (given, 8),
}


@pytest.mark.parametrize(("change", "warps"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_decides_on_the_program_is_asked_for_anew(change, warps):
    program, data = Program(), torch.ones(8)
    launch_cache.launch_cached(program, (1, 1, 1), given(data), num_warps=4)
    launch_cache.launch_cached(program, (1, 1, 1), change(data), num_warps=warps)
    assert len(program.asked) == len(launch_cache.CACHE) == 2


def test_tensors_may_come_with_their_strides_and_in_order():
    program, data = Program(), torch.ones(8)
    launch_cache.launch_cached(program, (1, 1, 1), {"TILE": 16}, [(data, 4, 1), 3])
    assert program.asked == [((1, 1, 1), ((data, 4, 1), 3, 16), {})]
    launch_cache.launch_cached(program, (1, 1, 1), {"TILE": 16}, [(torch.zeros(8), 4, 1), 3])
    assert len(program.asked) == 1
    for changed in ((data, 8, 1), (data[1:], 4, 1), (data.half(), 4, 1), (data, None, 1), (data, 4)):
        launch_cache.launch_cached(program, (1, 1, 1), {"TILE": 16}, [changed, 3])
    assert len(program.asked) == len(launch_cache.CACHE) == 6


def test_what_the_interpreter_runs_is_not_remembered(monkeypatch):
    launch_cache.launch_cached(Program(compiles=False), (1, 1, 1), given(torch.ones(2)))
    assert not launch_cache.CACHE
    monkeypatch.setattr(launch_cache, "CACHE_SIZE", 2)
    for count in range(5):
        launch_cache.launch_cached(Program(), (1, 1, 1), given(torch.ones(2), count))
    assert len(launch_cache.CACHE) == 1
