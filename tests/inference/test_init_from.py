import dataclasses
import shutil

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.config import Data, Model, Train
from regard.data.table import DataError
from regard.errors import DamagedError, DamagedWarning, RefusedError
from regard.inference.init_from import has_checkpoint
from regard.tasks import experiment
from regard.tasks.reverse import Config
from regard.training.loop import train

DATA = Data(samples=60, batch_tokens=64, max_source_length=5, max_target_length=5)


def config(*, size=8, samples=60, data=None, **settings) -> Config:
    usual = {"max_steps": 6, "evaluate_every": 3, "checkpoint_every": 3, "device": "cpu"}
    return Config(
        data=dataclasses.replace(data or DATA, samples=samples),
        model=Model(hidden_size=size),
        train=Train(**{**usual, **settings}),
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run to begin with."""
    directory = tmp_path_factory.mktemp("first")
    train(experiment("reverse", config())[0], directory, quiet=True)
    return directory


def tensors(model) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(mine, other) -> bool:
    return mine.keys() == other.keys() and all(torch.equal(mine[name], other[name]) for name in mine)


def test_weights_and_vocabularies_are_those_of_the_other_run(first):
    made, _ = experiment("reverse", config(init_from=str(first), seed=5, samples=200))
    assert same(tensors(made.model), tensors(regard.load(first, "cpu").model))
    assert made.codec.source.table == regard.load(first, "cpu").codec.source.table
    assert not same(tensors(made.model), tensors(experiment("reverse", config(seed=5))[0].model))


def test_limits_on_length_are_those_of_the_new_run(first):
    made, _ = experiment(
        "reverse", config(init_from=str(first), data=dataclasses.replace(DATA, max_source_length=4, over_long="truncate"))
    )
    assert (made.codec.max_source_length, made.codec.over_long) == (4, "truncate")


def test_a_moving_average_begins_with_them_too(first, tmp_path):
    train(
        experiment("reverse", config(init_from=str(first), ema_decay=0.9, max_steps=1, learning_rate=1e-9))[0],
        tmp_path,
        quiet=True,
    )
    state = load_file(tmp_path / "checkpoints" / "1" / "state.safetensors")
    for name, weight in load_file(first / "model.safetensors").items():
        if f"ema.{name}" in state:
            torch.testing.assert_close(state[f"ema.{name}"], weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("left", ["there", "gone"])
def test_a_run_that_goes_on_does_not_need_the_other_and_changes_no_bit(first, tmp_path, left):
    origin = tmp_path / "origin"
    shutil.copytree(first, origin)
    settings = {"init_from": str(origin), "seed": 1}
    train(experiment("reverse", config(**settings), tmp_path / "whole")[0], tmp_path / "whole", quiet=True)
    train(experiment("reverse", config(**settings, max_steps=4), tmp_path / "cut")[0], tmp_path / "cut", quiet=True)
    if left == "gone":
        shutil.rmtree(origin)
    train(experiment("reverse", config(**settings), tmp_path / "cut")[0], tmp_path / "cut", quiet=True)
    whole, cut = (tmp_path / name / "checkpoints" / "6" / "state.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == cut.read_bytes()


def test_without_a_whole_checkpoint_it_begins_with_the_other_run_again(first, tmp_path):
    settings = {"init_from": str(first), "seed": 1}
    out = tmp_path / "run"
    assert not has_checkpoint(out)
    train(experiment("reverse", config(**settings, max_steps=3), out)[0], out, quiet=True)
    assert has_checkpoint(out)
    for state in out.glob("checkpoints/*/state.safetensors"):
        state.write_bytes(state.read_bytes()[:-1])
    assert not has_checkpoint(out)
    made, _ = experiment("reverse", config(**settings), out)
    assert same(tensors(made.model), tensors(regard.load(first, "cpu").model))
    with pytest.warns(DamagedWarning):
        train(made, out, quiet=True)


def test_a_lost_codec_is_taken_from_the_other_run(first, tmp_path):
    settings = {"init_from": str(first), "seed": 1}
    train(experiment("reverse", config(**settings, max_steps=3), tmp_path)[0], tmp_path, quiet=True)
    (tmp_path / "codec.json").unlink()
    made, _ = experiment("reverse", config(**settings), tmp_path)
    assert made.codec.source.table == regard.load(first, "cpu").codec.source.table


def test_another_model_is_refused_by_its_settings_before_data_is_read(first, monkeypatch):
    monkeypatch.setattr("regard.tasks.kinds.text.records", lambda *_: pytest.fail("data was read"))
    text = r"train\.init_from=.* is of another model: model\.hidden_size is \d+ there and 12 here\. Begin with its settings"
    with pytest.raises(RefusedError, match=text):
        experiment("reverse", config(init_from=str(first), size=12))


def test_other_tokens_are_refused_with_what_to_do(first):
    text = r"was trained with data\.min_frequency=1, and now it is 2: .* Begin with its settings: regard train reverse .*config\.toml"
    with pytest.raises(RefusedError, match=text):
        experiment("reverse", config(init_from=str(first), data=dataclasses.replace(DATA, min_frequency=2)))


def test_a_damaged_or_missing_run_is_refused(first, tmp_path):
    with pytest.raises(DamagedError, match="is no trained model: it is no directory"):
        experiment("reverse", config(init_from=str(tmp_path / "nothing")))
    shutil.copytree(first, tmp_path / "copy")
    data = bytearray((tmp_path / "copy" / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "copy" / "model.safetensors").write_bytes(data)
    with pytest.raises(DamagedError, match=r"model\.safetensors"):
        experiment("reverse", config(init_from=str(tmp_path / "copy")))


def test_the_start_is_part_of_what_a_run_is(first, tmp_path):
    train(experiment("reverse", config(init_from=str(first), max_steps=3), tmp_path)[0], tmp_path, quiet=True)
    with pytest.raises(RefusedError, match=r"was started with train\.init_from = .*, and now it is None"):
        train(experiment("reverse", config())[0], tmp_path, quiet=True)


@pytest.mark.parametrize(("line", "side"), [("δ ε\t{}\n", "source"), ("{}\tδ ε\n", "target")])
def test_a_run_that_knows_nothing_of_one_side_of_the_data_is_no_start(first, tmp_path, line, side):
    known = regard.load(first, "cpu").codec.source.table[-1]
    (tmp_path / "pairs.tsv").write_text(line.format(known), encoding="utf-8")
    data = dataclasses.replace(DATA, train=str(tmp_path / "pairs.tsv"), valid=str(tmp_path / "pairs.tsv"))
    with pytest.raises(DataError, match=rf"train.init_from=.* knows no token of any {side}, .* of the other direction"):
        experiment("reverse", config(init_from=str(first), data=data))
