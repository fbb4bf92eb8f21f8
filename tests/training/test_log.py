import json
import math
import sys
from types import SimpleNamespace

import pytest

from regard.training.errors import RefusedError
from regard.training.log import Log, finite, numbers


def lines(path):
    return [json.loads(line) for line in (path / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_each_record_is_a_line_of_json(tmp_path):
    with Log(tmp_path, 0) as log:
        log.write({"step": 1, "loss": 0.5, "attention": {"解码": {"entropy": math.nan}}})
        log.write({"step": 2, "loss": math.inf})
    assert lines(tmp_path) == [{"step": 1, "loss": 0.5, "attention": {"解码": {"entropy": None}}}, {"step": 2, "loss": None}]


def test_lines_beyond_the_step_and_torn_lines_are_taken_back(tmp_path):
    text = '{"step": 5}\n{"step": 10}\n{"step": 15}\n{"loss": 1}\n[]\n{"step": 1'
    (tmp_path / "log.jsonl").write_text(text)
    with Log(tmp_path, 10) as log:
        log.write({"step": 11})
    assert lines(tmp_path) == [{"step": 5}, {"step": 10}, {"step": 11}]


def test_finite_reaches_into_lists():
    assert finite({"a": [1, math.nan, (math.inf, "x")]}) == {"a": [1, None, [None, "x"]]}


def test_numbers_are_named_by_their_path():
    assert numbers({"step": 3, "a": {"b": 1}, "c": 0.5, "d": "x"}) == [("a/b", 1.0), ("c", 0.5)]


def test_without_the_package_tensorboard_is_refused_by_the_name_of_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(
        RefusedError, match=r"train.tensorboard needs the tensorboard package.*pip install 'regard\[track\]'"
    ):
        Log(tmp_path, 0, tensorboard=True)


def test_tensorboard_gets_every_number(tmp_path, monkeypatch):
    seen = []

    class Writer:
        def __init__(self, directory, purge_step):
            seen.append((directory, purge_step))

        def add_scalar(self, name, value, step):
            seen.append((name, value, step))

        def close(self):
            seen.append("closed")

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
    with Log(tmp_path, 4, tensorboard=True) as log:
        log.write({"step": 5, "loss": 0.5, "valid": {"bleu": 30.0}})
    assert seen == [(str(tmp_path / "tensorboard"), 5), ("loss", 0.5, 5), ("valid/bleu", 30.0, 5), "closed"]
