import os

import pytest

from regard.errors import RefusedError
from regard.training.entries import check_entries
from regard.training.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run" / "checkpoints" / "1").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "1" / "state.safetensors").write_bytes(b"state")
    (tmp_path / "run" / "log.jsonl").write_text("{}\n")
    (tmp_path / "victim").write_text("kept")
    return tmp_path / "run"


def test_files_directories_and_links_inside_are_fine(run):
    (run / "newest").symlink_to("checkpoints/1")
    (run / "first").symlink_to("log.jsonl")
    (run / "nothing").symlink_to("missing")
    check_entries(run)
    with RunDirectory(run):
        pass


@pytest.mark.parametrize(
    "name", [".lock", "log.jsonl", ".tmp-old", "checkpoints/1/state.safetensors", "checkpoints/2", "more"]
)
@pytest.mark.parametrize("target", ["victim", "missing", "."])
def test_a_link_that_leads_out_is_refused_before_anything_is_written(run, name, target):
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(run.parent / target)
    with (
        pytest.raises(RefusedError, match=rf"{name} is a link that leads out of .*run, and a training does not"),
        RunDirectory(run),
    ):
        pass
    assert (run.parent / "victim").read_text() == "kept"


@pytest.mark.parametrize("name", ["config.toml", "log.jsonl", ".lock", "checkpoints/1/manifest.json"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_refused(run, name, make):
    (run / name).unlink(missing_ok=True)
    make(run / name)
    with pytest.raises(
        RefusedError, match=rf"{name} is no regular file, and a training does not write there: remove it, or"
    ):
        check_entries(run)
