import os
from dataclasses import replace

import pytest

from regard import io, manifest
from regard.errors import DamagedError, DamagedWarning, FailedError, RefusedError
from regard.training import run_directory as directory
from regard.training.run_directory import RunDirectory, check_same_config, flatten, verify

from .small import Part, Words, experiment


def claim(path, made=None):
    with RunDirectory(path) as run:
        run.claim(made or experiment())
        (path / "checkpoints" / "1").mkdir(exist_ok=True)  # work that could be lost
        return run


def test_a_run_that_has_done_nothing_yet_may_be_told_otherwise(tmp_path):
    for smoothing in (0.1, 0.2):
        with RunDirectory(tmp_path) as run:
            run.claim(experiment(label_smoothing=smoothing))
    assert "label_smoothing = 0.2" in (tmp_path / "config.toml").read_text(encoding="utf-8")


def test_a_claimed_directory_holds_config_codec_and_manifest(tmp_path):
    claim(tmp_path / "深" / "run")
    files = verify(tmp_path / "深" / "run")
    assert sorted(files) == ["config.toml", "vocabulary.json"]
    assert files["config.toml"].startswith(b'task = "small"\n')
    assert files["vocabulary.json"] == b'["a", "b"]'


def test_claiming_again_changes_nothing(tmp_path):
    claim(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    claim(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == before


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"learning_rate": 0.5}, "train.learning_rate = 0.01, and now it is 0.5"),
        ({"ema_decay": 0.9}, "train.ema_decay = None, and now it is 0.9"),
        ({"part": Part(hidden_size=9)}, "model.hidden_size = 8, and now it is 9"),
    ],
)
def test_another_config_is_refused_by_the_setting_that_differs(tmp_path, changed, text):
    claim(tmp_path)
    with pytest.raises(RefusedError, match=f"{tmp_path} was started with {text}: give it the old value"):
        claim(tmp_path, experiment(**changed))


def test_settings_that_only_decide_the_end_may_change_and_are_written_down(tmp_path):
    claim(tmp_path)
    claim(tmp_path, experiment(max_steps=50, log_every=1, max_minutes=2.0))
    assert b"max_steps = 50" in verify(tmp_path)["config.toml"]
    claim(tmp_path, experiment(max_epochs=1.5))
    assert b"max_epochs = 1.5" in verify(tmp_path)["config.toml"]


def test_the_cosine_schedule_needs_its_end_where_it_was(tmp_path):
    claim(tmp_path, experiment(schedule="cosine"))
    with pytest.raises(RefusedError, match=r"train.max_steps = 20, and now it is 50"):
        claim(tmp_path, experiment(schedule="cosine", max_steps=50))
    with pytest.raises(RefusedError, match=r"train.max_epochs = None, and now it is 2"):
        claim(tmp_path, experiment(schedule="cosine", max_epochs=2.0))


def test_the_average_of_checkpoints_needs_them_where_they_were(tmp_path):
    claim(tmp_path / "a", experiment(checkpoint_every=5))
    claim(tmp_path / "a", experiment(checkpoint_every=7))
    claim(tmp_path / "b", experiment(average_checkpoints=2))
    with pytest.raises(RefusedError, match=r"train.checkpoint_every = 5, and now it is 7"):
        claim(tmp_path / "b", experiment(average_checkpoints=2, checkpoint_every=7))


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x"])
def test_a_manifest_that_names_files_elsewhere_is_damaged(tmp_path, name):
    (tmp_path / "manifest.json").write_bytes(manifest.seal({"files": {name: "0"}, "pending": {}}))
    with pytest.raises(DamagedError, match="which lies outside"):
        verify(tmp_path)


def test_a_manifest_without_its_tables_is_damaged(tmp_path):
    for table in ({}, {"files": {}}, {"files": {"a": 1}, "pending": {}}, {"files": [], "pending": {}}):
        (tmp_path / "manifest.json").write_bytes(manifest.seal(table))
        with pytest.raises(DamagedError, match=r"has no table of (files|pending)"):
            verify(tmp_path)


def test_a_codec_that_does_not_fit_on_the_disk_is_told_as_such(tmp_path):
    class Large(Words):
        def save(self, directory):
            raise OSError(28, "No space left on device")

    with pytest.raises(FailedError, match=f"no room to write {tmp_path}: it needs more than is there"):
        claim(tmp_path, replace(experiment(), codec=Large()))


def test_a_setting_that_did_not_exist_yet_had_its_default(tmp_path):
    claim(tmp_path)
    path = tmp_path / "config.toml"
    path.write_text(path.read_text().replace("gradient_clip = 1.0\n", ""))
    check_same_config(tmp_path, experiment().config)
    with pytest.raises(RefusedError, match=r"train.gradient_clip = 1.0, and now it is 2.0"):
        check_same_config(tmp_path, experiment(gradient_clip=2.0).config)


def test_a_codec_made_from_other_data_is_refused(tmp_path):
    claim(tmp_path)
    with pytest.raises(RefusedError, match=r"vocabulary.json was made from other data"):
        claim(tmp_path, replace(experiment(), codec=Words(("c",))))


def test_a_directory_with_a_foreign_config_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text("a = 1\n")
    with pytest.raises(RefusedError, match=r"has a config.toml and no manifest.json: it is no run"):
        claim(tmp_path)
    assert (tmp_path / "config.toml").read_text() == "a = 1\n"


def test_a_broken_config_is_refused(tmp_path):
    claim(tmp_path)
    (tmp_path / "config.toml").write_text("a = = 1")
    with pytest.raises(RefusedError, match=r"config.toml is not a TOML file"):
        claim(tmp_path)


def test_at_every_instant_of_a_change_the_directory_can_be_loaded(tmp_path, monkeypatch):
    run = claim(tmp_path)
    run.publish({"model.safetensors": b"old", "more": b"old"})
    seen = []
    replace_ = os.replace

    def watched(source, target):
        replace_(source, target)
        files = verify(tmp_path)
        seen.append((files["model.safetensors"], files["more"]))

    monkeypatch.setattr(os, "replace", watched)
    run.publish({"model.safetensors": b"new", "more": b"new"})
    old, new = b"old", b"new"
    assert seen == [(old, old), (new, old), (new, new), (new, new)]


def test_a_change_cut_short_is_settled_at_the_next_look(tmp_path):
    run = claim(tmp_path)
    run.publish({"model.safetensors": b"old"})
    table = run.manifest()
    pending = {"model.safetensors": manifest.digest(b"new")}
    io.write(tmp_path / "manifest.json", manifest.seal({**table, "pending": pending}))
    assert run.holds("model.safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"new")
    assert run.holds("model.safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"bad")
    assert not run.holds("model.safetensors")
    with pytest.raises(DamagedError, match=r"model.safetensors is not what was written"):
        verify(tmp_path)


def test_a_damaged_manifest_is_made_anew_with_a_warning(tmp_path):
    claim(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.warns(DamagedWarning, match=r"manifest.json is not a manifest; it is made anew"):
        claim(tmp_path)
    assert sorted(verify(tmp_path)) == ["config.toml", "vocabulary.json"]


def test_a_directory_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RefusedError, match=r"cannot write to .*/file/run: Not a directory; choose a directory"):
        claim(tmp_path / "file" / "run")


def test_a_read_only_directory_is_refused(tmp_path):
    path = tmp_path / "run"
    path.mkdir(mode=0o555)
    me = os.geteuid()
    tmp_path.chmod(0o755)
    try:
        if me == 0:  # root may write anywhere
            os.seteuid(65534)
        with pytest.raises(RefusedError, match=r"cannot write to .*: Permission denied"):
            claim(path)
    finally:
        os.seteuid(me)


def test_what_a_kill_left_behind_is_swept_at_the_start(tmp_path):
    claim(tmp_path)
    (tmp_path / ".tmp-x").write_text("x")
    (tmp_path / "checkpoints" / ".tmp-5").mkdir()
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / ".tmp-7").write_text("x")  # killed while a sample of the task was written
    claim(tmp_path)
    assert not list(tmp_path.rglob(".tmp-*"))


def test_what_a_kill_left_behind_before_there_was_a_config_is_swept_too(tmp_path):
    with RunDirectory(tmp_path):
        (tmp_path / ".tmp-x").mkdir()  # killed while the codec was written for the first time
    claim(tmp_path)
    assert not list(tmp_path.rglob(".tmp-*"))


def test_temporary_files_of_somebody_else_are_left_alone(tmp_path):
    (tmp_path / ".tmp-mine").mkdir()
    claim(tmp_path)
    assert (tmp_path / ".tmp-mine").exists()


def test_flat_names_every_setting_by_its_path():
    assert flatten({"a": {"b": 1, "c": (1, 2)}, "d": "e"}) == {"a.b": 1, "a.c": [1, 2], "d": "e"}


def test_every_free_setting_exists():
    from regard.config import Data, Train

    for path in directory.FREE:
        part, _, name = path.partition(".")
        assert hasattr({"data": Data(), "train": Train()}[part], name)


def test_a_run_of_another_task_is_told_as_such(tmp_path):
    (tmp_path / "config.toml").write_text('task = "reverse"\n', encoding="utf-8")
    with pytest.raises(RefusedError, match="is a run of the task 'reverse', not of 'translate': train into another"):
        check_same_config(tmp_path, experiment().config, "translate")


def test_a_note_stands_beside_the_files_and_stays_when_they_change(tmp_path):
    run = claim(tmp_path)
    before = verify(tmp_path)
    run.note("alignment", {"head": 1})
    assert verify(tmp_path) == before
    run.publish({"more.json": b"{}"})
    assert manifest.unseal(tmp_path / "manifest.json")["alignment"] == {"head": 1}
    assert verify(tmp_path) == {**before, "more.json": b"{}"}


def test_nothing_is_noted_where_there_is_no_run(tmp_path):
    with pytest.raises(DamagedError, match=r"manifest.json is missing"):
        RunDirectory(tmp_path).note("alignment", {})


def test_files_beside_a_run_are_put_there_once_and_no_part_of_it(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
        run.write_extra_files({"samples/1.png": b"one"})
        run.write_extra_files({"samples/1.png": b"two"})
    assert (tmp_path / "samples" / "1.png").read_bytes() == b"one"
    assert "samples/1.png" not in run.manifest()["files"]


def test_a_note_clears_away_what_an_earlier_one_left_that_was_killed(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.claim(experiment())
    for name in (".tmp-0123456789abcdef", ".tmp-mine"):
        (tmp_path / name).write_text("half")
    RunDirectory(tmp_path).note("alignment", {"head": 1})
    assert [path.name for path in tmp_path.glob(".tmp-*")] == [".tmp-mine"]


def test_a_directory_with_other_things_in_it_is_refused(tmp_path):
    config, folder = experiment().config, tmp_path / "papers"
    directory.check_resumable(folder, config, "small")  # it is not there yet
    folder.mkdir()
    (folder / ".gitkeep").touch()
    directory.check_resumable(folder, config, "small")
    for name in ("b.txt", "a.txt"):
        (folder / name).touch()
    told = rf"{folder} is no run, and has other things in it \(a.txt and 1 more\): train into a new directory"
    with pytest.raises(RefusedError, match=told):
        directory.check_resumable(folder, config, "small")
    claim(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").touch()
    directory.check_resumable(tmp_path / "run", config, "small")


def test_a_file_in_the_place_of_a_run_is_refused_before_data_is_read(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(
        RefusedError, match=r"run is a file, and a run needs a directory: name another one, or move the file"
    ):
        directory.check_resumable(tmp_path / "run", experiment().config, "small")
