import pytest
import torch

from regard.kernels.runtime import tiles

OutOfResources = pytest.importorskip("triton.runtime.errors", reason="Triton is for Linux").OutOfResources
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(tiles, "TOO_LARGE", {})
    monkeypatch.setattr(tiles, "find_shared_memory", lambda device: 100)


class Chip:
    """Takes tiles up to a size, and writes down what was tried."""

    def __init__(self, most):
        self.most, self.tried = most, []

    def start(self, size):
        self.tried.append(size)
        if size > self.most:
            raise OutOfResources(size, self.most, "shared memory")
        return -size


def test_the_largest_that_fits_is_taken():
    small = Chip(100)
    assert tiles.launch_largest(small.start, [64, 32], lambda size: size, CPU, "one") == -64
    assert small.tried == [64]


def test_what_is_known_to_be_too_much_is_not_even_compiled():
    small = Chip(100)
    assert tiles.launch_largest(small.start, [256, 128, 64, 32], lambda size: size, CPU, "one") == -64
    assert small.tried == [64]


def test_what_the_chip_refuses_is_tried_once_and_remembered_for_its_kind():
    small = Chip(40)
    for _ in range(2):
        assert tiles.launch_largest(small.start, [64, 48, 32], lambda size: 0, CPU, "one") == -32
    assert small.tried == [64, 48, 32, 32]
    assert tiles.launch_largest(small.start, [64, 32], lambda size: 0, CPU, "another") == -32
    assert small.tried[4:] == [64, 32]


def test_the_smallest_is_tried_in_any_case_and_its_error_comes_out():
    small = Chip(8)
    with pytest.raises(OutOfResources, match="shared memory, Required: 16, Hardware limit: 8"):
        tiles.launch_largest(small.start, [200, 16], lambda size: 1000, CPU, "one")
    assert small.tried == [16]


def test_another_error_is_no_matter_of_room():
    def start(size):
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        tiles.launch_largest(start, [64, 32], lambda size: 0, CPU, "one")
    assert tiles.TOO_LARGE == {("one", CPU): 0}


def test_what_fits_is_worked_out_once():
    def need(size):
        asked.append(size)
        return size

    asked, small = [], Chip(100)
    for _ in range(3):
        assert tiles.launch_largest(small.start, [128, 64, 32], need, CPU, "one") == -64
    assert asked == [128, 64]


def test_where_the_device_is_current_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert tiles.use_device(CPU) is tiles.use_device(torch.device("cuda", 1)) is tiles.CURRENT_DEVICE
    assert isinstance(tiles.use_device(torch.device("cuda", 0)), torch.cuda.device)
