import os
import resource
import shutil
import time

import pytest
import torch
from safetensors.torch import load_file, save, save_file

import regard
from regard import config as configuration
from regard import manifest, tasks
from regard.config import Data, Model, Train
from regard.errors import ConfigError, DamagedError, DataWarning, RefusedError
from regard.tasks.translate import Config
from regard.training.loop import train
from regard.training.run_directory import RunDirectory


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    config = Config(data=Data(batch_tokens=512, samples=60), model=Model(hidden_size=16), train=Train(max_steps=2))
    experiment, _ = tasks.experiment("translate", config)
    train(experiment, directory, quiet=True)
    return experiment, directory


def test_what_is_loaded_is_what_was_trained(trained):
    experiment, directory = trained
    loaded = regard.load(directory)
    assert loaded.config == experiment.config
    assert loaded.name == "translate"
    for name, weight in loaded.model.state_dict().items():
        assert torch.equal(weight, experiment.model.state_dict()[name].cpu()), name


def test_a_codec_file_that_the_manifest_does_not_know_is_refused(trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    (copy / "joint.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"joint\.json is not in the manifest"):
        regard.load(copy)


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(DamagedError, match=r"manifest\.json"):
        regard.load(tmp_path)


def test_weights_of_another_model_are_refused(trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    cut = {name: tensor[:1].clone() for name, tensor in load_file(copy / "model.safetensors").items()}
    save_file(cut, copy / "model.safetensors")
    noted = manifest.unseal(copy / manifest.NAME)
    noted["files"]["model.safetensors"] = manifest.digest((copy / "model.safetensors").read_bytes())
    (copy / manifest.NAME).write_bytes(manifest.seal(noted))
    with pytest.raises(RefusedError, match="is of another model"):
        regard.load(copy)


def test_a_run_of_an_earlier_format_is_neither_opened_nor_gone_on_with(trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    table = {name: value for name, value in manifest.unseal(copy / manifest.NAME).items() if name != "versions"}
    (copy / manifest.NAME).write_bytes(manifest.seal({**table, "format": 1}))
    (copy / "config.toml").write_text("[train]\nrate = 0.1\n")
    told = (
        r"run/manifest.json has format 1, and this version .* reads format 2; .*: train again, or open it with the version"
    )
    with pytest.raises(RefusedError, match=told):
        regard.load(copy)
    with RunDirectory(copy) as run, pytest.raises(RefusedError, match=told):
        run.claim(tasks.experiment("translate", trained[0].config)[0])


@pytest.mark.parametrize("name", ["model.safetensors", "config.toml", "codec.json", manifest.NAME])
def test_an_altered_or_missing_file_is_named_with_what_to_do(trained, tmp_path, name):
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    again = r": copy .*run again from where it is whole, or train, import or export it anew$"
    changed = bytearray((copy / name).read_bytes())
    changed[len(changed) // 2] ^= 1
    (copy / name).write_bytes(changed)
    with pytest.raises(DamagedError, match=rf"{name} (is not what was written: its SHA-256 differs|was changed).*{again}"):
        regard.load(copy)
    (copy / name).unlink()
    gone = "it has no manifest.json" if name == manifest.NAME else rf"{name} is missing{again}"
    with pytest.raises(DamagedError, match=gone):
        regard.load(copy)


def test_what_is_no_trained_model_is_told_as_such(tmp_path):
    with pytest.raises(DamagedError, match=r"is no trained model: it has no manifest.json; give the directory that"):
        regard.load(tmp_path)
    with pytest.raises(DamagedError, match="is no trained model: it is no directory"):
        regard.load(tmp_path / "nowhere")


def test_a_model_of_transformers_is_to_be_imported_first(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(DamagedError, match=r"is no trained model: .* `regard import .* --out DIR` makes one$"):
        regard.load(tmp_path)


def forged(trained, tmp_path, change):
    """A copy of a run in which a file is another, and the manifest agrees."""
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    change(copy)
    noted = manifest.unseal(copy / manifest.NAME)
    noted["files"] = {name: manifest.digest((copy / name).read_bytes()) for name in noted["files"]}
    (copy / manifest.NAME).write_bytes(manifest.seal(noted))
    return copy


def setting(text):
    def change(copy):
        path = copy / "config.toml"
        name = text.partition(" = ")[0]
        lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{name} = ")]
        place = lines.index("[model]") + 1
        path.write_text("\n".join([*lines[:place], text, *lines[place:]]))

    return change


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("make", "kind"),
    [(os.mkfifo, "a pipe"), (lambda path: os.symlink("/dev/zero", path), "a device"), (os.mkdir, "a directory")],
)
@pytest.mark.parametrize("name", ["model.safetensors", "config.toml", "source.json"])
def test_what_is_no_regular_file_is_neither_waited_for_nor_read(trained, tmp_path, name, make, kind):
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    (copy / name).unlink()
    make(copy / name)
    text = "leads out of" if kind == "a device" else f"is no regular file but {kind}"
    with pytest.raises(DamagedError, match=rf"{name} .*{text}"):
        regard.load(copy)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("layers = 1000000", r"config\.toml: model\.layers needs to be 256 or less, got 1000000"),
        (
            "hidden_size = 4096",
            r"of another model: it has \d+ tensors of [\d,]+ bytes, and the config beside it describes several",
        ),
        (
            "layers = 256",
            r"of another model: it has \d+ tensors of [\d,]+ bytes, and the config beside it describes several",
        ),
    ],
)
def test_a_config_far_larger_than_its_weights_is_refused_before_memory_is_taken(trained, tmp_path, text, error):
    copy = forged(trained, tmp_path, setting(text))
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises((ConfigError, RefusedError), match=error):
        regard.load(copy)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 * 1024  # in KiB
    assert time.process_time() - begun < 5


def test_a_training_that_publishes_while_its_model_is_opened_does_no_damage(trained, tmp_path, monkeypatch):
    copy = tmp_path / "run"
    shutil.copytree(trained[1], copy)
    weights = {name: torch.zeros_like(each) for name, each in load_file(copy / "model.safetensors").items()}
    check = config_check = configuration.check

    def publish(*arguments):
        monkeypatch.setattr(configuration, "check", config_check)
        with RunDirectory(copy) as run:
            run.publish({"model.safetensors": save(weights)})
        return check(*arguments)

    monkeypatch.setattr(configuration, "check", publish)
    assert all(not each.any() for each in regard.load(copy).model.parameters())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("config.toml", b"\xff"),
        ("config.toml", b"a = " + b"[" * 5000),
        ("codec.json", b"3"),
        ("source.json", b'{"format": 1}'),
    ],
)
def test_what_a_library_raises_for_a_forged_file_is_damage_that_names_the_run(trained, tmp_path, name, data):
    copy = forged(trained, tmp_path, lambda copy: (copy / name).write_bytes(data))
    with pytest.raises((DamagedError, ConfigError), match=str(copy)):
        regard.load(copy)


@pytest.mark.parametrize("text", ["grammar = '/dev/zero'", "lm = '/dev/zero'"])
def test_a_file_outside_that_a_config_names_for_the_search_is_not_opened(trained, tmp_path, text):
    def change(copy):
        path = copy / "config.toml"
        lines = path.read_text().splitlines()
        at = lines.index("[search]") + 1 if "[search]" in lines else len(lines)
        path.write_text("\n".join([*lines[:at], *([] if "[search]" in lines else ["[search]"]), text, *lines[at:]]))

    with pytest.warns(DataWarning, match=r"has search.* a file outside of it, which is not opened; give --search"):
        model = regard.load(forged(trained, tmp_path, change), "cpu")
    assert model.config.search.grammar is None
    assert model.config.search.lm is None


def test_a_task_that_does_not_exist_is_named_with_the_nearest(trained, tmp_path):
    def rename(copy):
        path = copy / "config.toml"
        path.write_text(path.read_text().replace('"translate"', '"translat"'))

    copy = forged(trained, tmp_path, rename)
    with pytest.raises(
        RefusedError, match=r"run cannot be opened: no task is called 'translat'; did you mean 'translate'\?"
    ):
        regard.load(copy)
