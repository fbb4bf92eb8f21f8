import json
import shutil

import pytest
import torch

import regard
from regard import io, manifest
from regard.alignment.heads import Head
from regard.errors import DamagedError, RefusedError, UnwritableError
from regard.inference.alignment_head import save_head
from regard.inference.ensemble.directory import Settings, read, write
from regard.regular_files import open_regular

TEXTS = ["Tom chases Jerry", "Mary likes Tom"]


@pytest.fixture
def made(runs, tmp_path):
    path = tmp_path / "all"
    write(path, [runs["first"], runs["transformer"]], Settings("logits", (0.75, 0.25)))
    return path


def reseal(path, name, data):
    """Put a file in place as somebody does who also writes the manifest."""
    table = manifest.unseal(path / manifest.NAME)
    (path / name).write_bytes(data)
    table["files"][name] = manifest.digest(data)
    (path / manifest.NAME).write_bytes(manifest.seal({"files": table["files"], "pending": {}}))


def test_what_is_opened_is_what_was_put_together(made, runs):
    loaded = regard.load(made)
    fresh = regard.ensemble([runs["first"], runs["transformer"]], average="logits", weights=[3.0, 1.0])
    assert loaded.model.weights == (0.75, 0.25)
    assert loaded.model.average == "logits"
    for name, weight in loaded.model.state_dict().items():
        assert torch.equal(weight, fresh.model.state_dict()[name]), name
    assert [each.text for each in loaded.predict(TEXTS, beam=2)] == [each.text for each in fresh.predict(TEXTS, beam=2)]


def test_it_needs_the_runs_no_more(runs, tmp_path):
    shutil.copytree(runs["first"], tmp_path / "run")
    write(tmp_path / "all", [tmp_path / "run", tmp_path / "run"], Settings("probabilities", (0.5, 0.5)))
    shutil.rmtree(tmp_path / "run")
    assert regard.load(tmp_path / "all").predict(TEXTS)
    assert not list(tmp_path.glob(f"{io.TEMPORARY}*"))


def test_what_was_noted_of_a_member_or_of_all_is_kept(runs, tmp_path):
    shutil.copytree(runs["first"], tmp_path / "run")
    save_head(tmp_path / "run", Head("decoder.cross", 0))
    write(tmp_path / "all", [tmp_path / "run", tmp_path / "run"], Settings("probabilities", (0.5, 0.5)))
    assert regard.load(tmp_path / "all").head == Head("decoder.cross", 0)
    save_head(tmp_path / "all", Head("1.decoder.cross", None, shift=True))
    assert regard.load(tmp_path / "all").head == Head("1.decoder.cross", None, shift=True)


def test_a_place_that_is_taken_is_refused(made, runs, tmp_path):
    with pytest.raises(RefusedError, match="all is there already; choose another directory, or remove it first"):
        write(made, [runs["first"]], Settings("logits", (1.0,)))
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="file is there already"):
        write(tmp_path / "file", [runs["first"]], Settings("logits", (1.0,)))
    with pytest.raises(UnwritableError, match=r"cannot write .*below: there is no directory .*file; make it first"):
        write(tmp_path / "file" / "below", [runs["first"]], Settings("logits", (1.0,)))
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", [runs["first"]] * 2, Settings("logits", (0.5, 0.5)))
    assert regard.load(tmp_path / "empty")


def test_nothing_is_left_of_a_run_that_is_damaged(runs, tmp_path):
    shutil.copytree(runs["first"], tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"no")
    with pytest.raises(DamagedError, match=r"model.safetensors is not what was written"):
        write(tmp_path / "all", [runs["first"], tmp_path / "run"], Settings("logits", (0.5, 0.5)))
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    "name", ["ensemble.json", "members/0/manifest.json", "members/1/model.safetensors", "members/0/config.toml"]
)
def test_a_changed_byte_anywhere_is_refused(made, name):
    data = bytearray((made / name).read_bytes())
    data[len(data) // 2] ^= 1
    (made / name).write_bytes(bytes(data))
    with pytest.raises(DamagedError, match="is not what was written"):
        regard.load(made)


def test_a_member_that_is_missing_is_refused(made):
    shutil.rmtree(made / "members" / "1")
    with pytest.raises(DamagedError, match=r"members/1/manifest.json is missing"):
        regard.load(made)


def test_a_member_that_was_swapped_for_a_whole_one_is_refused(made, runs):
    shutil.rmtree(made / "members" / "0")
    shutil.copytree(runs["second"], made / "members" / "0")
    with pytest.raises(DamagedError, match=r"members/0/manifest.json is not what was written"):
        regard.load(made)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "needs to be the settings of an ensemble, format 1"),
        (b'{"format": 2}', "needs to be the settings of an ensemble, format 1"),
        (b'{"format": 1, "average": "mean"}', "average needs to be one of probabilities, logits, memories, got 'mean'"),
        (b'{"format": 1, "average": ["logits"]}', "average needs to be one of"),
        (b'{"format": 1, "average": "logits"}', "weights need to be a list of numbers, got None"),
        (b'{"format": 1, "average": "logits", "weights": [true, "2"]}', "weights need to be a list of numbers"),
    ],
)
def test_hostile_settings_are_refused(made, data, text):
    reseal(made, "ensemble.json", data)
    with pytest.raises(DamagedError, match=text):
        regard.load(made)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1, 1, 1], r"its manifest has no members/2/manifest.json, and ensemble.json has 3 weights"),
        ([1], "is no ensemble: an ensemble needs two members or more, got 1"),
        ([0, 0], "is no ensemble: weights need to be 0 or more"),
        ([float("nan"), 1], "is no ensemble: weights need to be 0 or more"),
    ],
)
def test_weights_that_make_no_sense_are_refused(made, weights, text):
    reseal(made, "ensemble.json", json.dumps({"format": 1, "average": "logits", "weights": weights}).encode())
    with pytest.raises(DamagedError, match=text):
        regard.load(made)


def test_settings_come_back_as_they_were_written(made):
    assert read((made / "ensemble.json").read_bytes(), made) == Settings("logits", (0.75, 0.25))


def test_nobody_trains_into_an_ensemble(made):
    from .conftest import trained

    with pytest.raises(RefusedError, match="all is an ensemble of trained models: train into another directory"):
        trained(made)
    assert not (made / "checkpoints").exists()
    assert regard.load(made)


def test_an_ensemble_inside_an_ensemble_is_refused(made, tmp_path):
    outer = tmp_path / "outer"
    shutil.copytree(made, outer)
    shutil.rmtree(outer / "members" / "1")
    shutil.copytree(made, outer / "members" / "1")
    reseal(outer, "members/1/manifest.json", (made / manifest.NAME).read_bytes())
    with pytest.raises(DamagedError, match=r"members/1 is an ensemble inside an ensemble, which regard does not write$"):
        regard.load(outer)


def test_members_are_bounded_and_weights_are_numbers(made):
    settings = {"format": 1, "average": "logits", "weights": [1.0] * 101}
    reseal(made, "ensemble.json", json.dumps(settings).encode())
    with pytest.raises(DamagedError, match=r"ensemble\.json has 101 weights, and an ensemble has at most 100 members$"):
        regard.load(made)
    for weight in (10**400, float("inf"), True, "1"):
        reseal(made, "ensemble.json", json.dumps(settings | {"weights": [1.0, weight]}).encode())
        with pytest.raises(DamagedError, match=r"ensemble\.json: weights need to be a list of numbers, got \[1\.0, "):
            regard.load(made)


def test_a_member_is_read_by_the_manifest_that_was_checked(made, monkeypatch):
    read, paths = open_regular, []

    def count(path, root=None):
        paths.append(str(path.relative_to(made)))
        return read(path, root)

    monkeypatch.setattr("regard.regular_files.open_regular", count)
    monkeypatch.setattr("regard.training.tensor_file.open_regular", count)
    regard.load(made)
    assert len(paths) == len(set(paths)) == sum(1 for each in made.rglob("*") if each.is_file())


def test_a_member_that_writes_no_text_is_refused(made, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.inference.ensemble.directory.SequencePredictor", str)
    with pytest.raises(DamagedError, match=r"members/0 is a run of translate, which writes no text, and members of an"):
        regard.load(made)
