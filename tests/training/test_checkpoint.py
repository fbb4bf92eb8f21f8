import pytest
import torch

from regard import manifest
from regard.errors import DamagedError, DamagedWarning
from regard.training import checkpoint


@pytest.fixture
def folder(tmp_path):
    for step in (5, 10, 15):
        checkpoint.save(
            tmp_path, step, {"a": torch.full((3,), float(step)), "b": torch.tensor(step)}, {"step": step, "x": 0.1}
        )
    return tmp_path


def test_what_was_saved_comes_back(folder):
    found = checkpoint.load(folder / "10")
    assert found.step == 10
    assert found.counters == {"step": 10, "x": 0.1}
    assert torch.equal(found.tensors["a"], torch.full((3,), 10.0))
    assert found.tensors["b"].shape == ()


def test_the_newest_is_by_number_and_not_by_name(folder):
    checkpoint.save(folder, 100, {"a": torch.zeros(1)}, {})
    assert checkpoint.newest(folder).step == 100
    assert checkpoint.steps(folder) == [5, 10, 15, 100]


def test_a_damaged_one_is_moved_aside_with_one_warning_and_the_next_is_taken(folder):
    (folder / "15" / "state.safetensors").write_bytes(b"")
    with pytest.warns(DamagedWarning, match=r"15/state.safetensors is not what was written.*moved to .bad-15") as warned:
        assert checkpoint.newest(folder).step == 10
    assert len(warned) == 1
    assert (folder / ".bad-15").is_dir()
    assert checkpoint.steps(folder) == [5, 10]


def test_a_second_damaged_one_of_the_same_step_does_not_replace_the_first(folder):
    for name in (".bad-15", ".bad-15-2"):
        checkpoint.save(folder, 15, {"a": torch.zeros(1)}, {})
        (folder / "15" / "manifest.json").unlink()
        with pytest.warns(DamagedWarning, match=f"moved to {name},"):
            checkpoint.newest(folder)
        assert (folder / name).is_dir()


def test_where_all_are_damaged_there_is_none(tmp_path):
    (tmp_path / "3").mkdir()
    with pytest.warns(DamagedWarning, match="manifest.json is missing"):
        assert checkpoint.newest(tmp_path) is None


def test_a_checkpoint_under_another_number_is_damaged(folder):
    (folder / "10").rename(folder / "20")
    with pytest.raises(DamagedError, match="holds the checkpoint of step 10"):
        checkpoint.load(folder / "20")


def test_a_manifest_without_its_parts_is_damaged(folder):
    for table in ({"step": 10}, {"step": 10, "files": [], "counters": {}}, {"step": 10, "files": {}, "counters": 3}):
        (folder / "10" / "manifest.json").write_bytes(manifest.seal(table))
        with pytest.raises(DamagedError, match="lacks its files or its counters"):
            checkpoint.load(folder / "10")


def test_the_last_two_are_kept_and_the_last_regular_ones(folder):
    for step in (17, 20, 23):
        checkpoint.save(folder, step, {"a": torch.zeros(1)}, {})
    assert checkpoint.regular(folder, 5) == [5, 10, 15, 20]
    checkpoint.prune(folder, keep=3, every=5)
    assert checkpoint.steps(folder) == [10, 15, 20, 23]
    checkpoint.prune(folder, keep=1, every=0)
    assert checkpoint.steps(folder) == [20, 23]


def test_no_bit_of_a_checkpoint_can_change_unnoticed(tmp_path):
    path = checkpoint.save(tmp_path, 1, {"a": torch.zeros(2)}, {})
    whole = (path / "state.safetensors").read_bytes()
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        (path / "state.safetensors").write_bytes(data)
        with pytest.raises(DamagedError):
            checkpoint.load(path)
