"""Exports to CTranslate2 that run without regard: by the code in their README.md."""

import json
import shutil
import subprocess
import sys
import venv

import pytest

import regard
from regard.errors import DamagedError
from regard.interop.ctranslate2.write import write

from ..readme import answers, code, run
from ..transformers_ import opened, sources
from ..transformers_ import run as trained


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    out = tmp_path_factory.mktemp("ctranslate2") / "exported"
    write(trained("pre"), out)
    return out


def test_the_page_answers_as_the_run_does(exported):
    texts = [*sources(6), "Tom chases a zebra"]
    expected = [answer.text for answer in opened("pre").predict(texts, beam=1)]
    assert answers(exported, *texts) == expected
    assert len(answers(exported)) == 1


def test_what_is_not_of_this_model_is_an_error(exported, tmp_path):
    for text in ("", "zebra"):
        assert f"ValueError: the model knows nothing in {text!r}" in run(exported, text).stderr
    assert "a source has ids below" in run(exported, more="generate([4, 100000, 2])").stderr
    assert "a source has ids below" in run(exported, more="generate([-4, 2])").stderr
    shutil.copytree(exported, tmp_path / "other")
    path = tmp_path / "other" / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"Tom"', '"Tim"'), encoding="utf-8")
    assert "ValueError: tokenizer.json is not the file of this export" in run(tmp_path / "other").stderr


def test_export_json_names_the_vocabularies_and_the_limits(exported):
    table = json.loads((exported / "export.json").read_text())
    assert table["vocabularies"] == dict.fromkeys(("source", "target"), "shared_vocabulary.json")
    assert table["tokenizers"] == dict.fromkeys(("source", "target"), "tokenizer.json")
    assert table["search"]["max_length"] == 12
    assert "model.bin" in table["files"]


def test_regard_says_what_opens_it(exported):
    with pytest.raises(DamagedError, match=r"it is an export that runs without regard, by the code in its README\.md"):
        regard.load(exported)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_page_runs_in_an_environment_of_what_it_names_alone(exported, tmp_path):
    venv.create(tmp_path / "bare", with_pip=True)
    python = tmp_path / "bare" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "ctranslate2", "tokenizers"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no packages can be installed here: {done.stderr.splitlines()[-1:]}")
    found = subprocess.run([python, "-c", code(exported)], cwd=exported, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == answers(exported)
    assert sys.executable != str(python)
