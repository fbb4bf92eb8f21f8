"""Hostile model directories run no code and open nothing outside: the gate of the audit hook. See hostile.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unhooked

HARNESS = Path(__file__).with_name("hostile.py")
BASES = ["archive.zip", "ensemble", "onnx", "picture", "rnn", "theirs", "transformer"]
ANSWERED = {
    "rnn": ["compiled", "native", "onnx", "resume"],
    "transformer": ["compiled", "ctranslate2", "native", "onnx", "resume"],
    "picture": ["native", "resume"],
    "ensemble": ["native"],
    "onnx": ["native", "onnx"],
    "archive.zip": ["native", "onnx"],
    "theirs": ["import"],
}
"""Which questions the models answer before they are changed; the others are refused."""


def asked(folder, count, real):
    command = [sys.executable, str(HARNESS), str(folder), str(count), str(int(real))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_holds(result, count):
    assert result["cases"] >= count
    assert result["bases"] == BASES
    assert {
        base: sorted(name for name, code in codes.items() if code == 0) for base, codes in result["usual"].items()
    } == ANSWERED
    for event, found in result["leaks"].items():  # the gate bites: each of these directories does what it must not
        assert any(event in each for each in found), (event, found)
    assert result["fallen"] == {}


@pytest.mark.timeout(240)
def test_a_hundred_hostile_directories_run_nothing_and_are_refused_or_answered(tmp_path):
    assert_holds(asked(tmp_path, 100, real=False), 100)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_all_hostile_directories_run_nothing_and_are_refused_or_answered(tmp_path):
    assert_holds(asked(tmp_path, 1000, real=True), 400)
