import json
import math
import resource
import signal
import sys
from types import SimpleNamespace

import pytest

from regard.errors import RefusedError, UnwritableError
from regard.training.log import Log, flatten_numbers, replace_nonfinite


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
    assert replace_nonfinite({"a": [1, math.nan, (math.inf, "x")]}) == {"a": [1, None, [None, "x"]]}


def test_numbers_are_named_by_their_path():
    assert flatten_numbers({"step": 3, "a": {"b": 1}, "c": 0.5, "d": "x"}) == [("a/b", 1.0), ("c", 0.5)]


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


def test_a_line_about_the_checkpoints_step_that_is_newer_than_the_checkpoint_is_taken_back(tmp_path):
    text = '{"step": 5}\n{"step": 10, "loss": 1}\n{"step": 10, "valid": {}}\n'
    (tmp_path / "log.jsonl").write_text(text)
    with Log(tmp_path, 10, lines=2) as log:
        assert log.lines == 2
        log.write({"step": 10, "valid": {}})
        assert log.lines == 3
    assert (tmp_path / "log.jsonl").read_text() == text


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_half_of_it(tmp_path):
    log = Log(tmp_path, 0)
    log.write({"step": 1})
    size = (tmp_path / "log.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, before[1]))
        with pytest.raises(UnwritableError, match=r"no room to write .*log.jsonl: it needs 12 bytes"):
            log.write({"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert lines(tmp_path) == [{"step": 1}]


def test_whoever_checks_may_object_to_a_line(tmp_path):
    def check():
        raise UnwritableError("another directory")

    log = Log(tmp_path, 0, check=check)
    with pytest.raises(UnwritableError, match="another directory"):
        log.write({"step": 1})
    assert lines(tmp_path) == []
