import dataclasses
import json
import math
import os

import pytest

from regard import config as configuration
from regard import manifest
from regard.compare.figures import NAME, describe_inputs, load_figures, save_figures
from regard.tasks.reverse import Config


@pytest.fixture
def trained(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    seal(run, "abc")
    (tmp_path / "train.tsv").write_text("ab\tba\n", encoding="utf-8")
    path = str(tmp_path / "train.tsv")
    config = configuration.read(Config, overrides=[f"data.train={path}::{path}", f"data.valid={path}"])
    save_figures(run, config, None, {"valid": {"loss": {"value": math.inf}}, "seconds": 1.5})
    return run, config


def seal(run, digest):
    (run / manifest.NAME).write_bytes(manifest.seal({"files": {"model.safetensors": digest}, "pending": {}}))


def test_figures_come_back_as_they_were_and_what_is_no_number_as_none(trained):
    assert load_figures(*trained, None) == {"valid": {"loss": {"value": None}}, "seconds": 1.5}


def test_figures_are_good_for_the_settings_the_beam_and_the_model_they_were_made_with(trained):
    run, config = trained
    assert load_figures(run, config, 5) is None
    assert load_figures(run, dataclasses.replace(config, train=dataclasses.replace(config.train, max_steps=7)), None) is None
    seal(run, "abd")
    assert load_figures(run, config, None) is None


def test_figures_are_good_for_the_data_they_were_made_with(trained, tmp_path):
    run, config = trained
    assert list(describe_inputs(config, None)["files"]) == [str(tmp_path / "train.tsv")]
    os.utime(tmp_path / "train.tsv", ns=(1, 1))
    assert load_figures(run, config, None) is not None  # a copy is as good
    (tmp_path / "train.tsv").write_text("ab\tbb\n", encoding="utf-8")
    assert load_figures(run, config, None) is None
    (tmp_path / "train.tsv").unlink()
    assert load_figures(run, config, None) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"asked": 1, "model": 2})])
def test_a_file_that_is_no_table_of_figures_is_as_good_as_none(trained, text):
    (trained[0] / NAME).write_text(text, encoding="utf-8")
    assert load_figures(*trained, None) is None


def test_where_nothing_was_trained_there_are_no_figures(tmp_path):
    assert load_figures(tmp_path / "none", Config(), None) is None


def test_tables_that_are_joined_are_several_files(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    for path in paths:
        with open(path, "w", encoding="utf-8") as file:
            file.write("ab\tba\n")
    config = configuration.read(Config, overrides=[f"data.train={'+'.join(paths)}"])
    assert list(describe_inputs(config, None)["files"]) == paths


def test_a_folder_of_data_goes_by_its_time(tmp_path):
    config = configuration.read(Config, overrides=[f"data.train={tmp_path}"])
    before = describe_inputs(config, None)
    os.utime(tmp_path, ns=(1, 1))
    assert describe_inputs(config, None)["files"] == {str(tmp_path): "changed 1"} != before["files"]
