from types import SimpleNamespace

import pytest

from regard.cli._predict_output import build_output_files
from regard.errors import DataError


class Codec:
    """A codec that writes what it is told."""

    def write(self, prediction, file):
        file.write(prediction)


MODEL = SimpleNamespace(name="toy", codec=Codec(), output_suffix=".bin")


def test_one_answer_is_the_file_itself_and_several_are_numbered_in_a_folder(tmp_path):
    build_output_files(MODEL, tmp_path / "a.bin", several=False).write(1, SimpleNamespace(output=b"one"))
    assert (tmp_path / "a.bin").read_bytes() == b"one"
    files = build_output_files(MODEL, tmp_path / "folder", several=True)
    files.write(1, SimpleNamespace(output=b"one"))
    files.write(12, SimpleNamespace(output=b"twelve"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "folder").iterdir()} == {
        "1.bin": b"one",
        "12.bin": b"twelve",
    }


def test_a_model_that_writes_text_has_none(tmp_path):
    assert build_output_files(SimpleNamespace(output_suffix=None), tmp_path / "a.txt", several=False) is None
    assert build_output_files(MODEL, None, several=False) is None


def test_a_path_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a file called NAME.bin for the answer of this model \(toy\), got 'a.txt'"):
        build_output_files(MODEL, tmp_path / "a.txt", several=False)
    with pytest.raises(DataError, match="--out needs a folder for the answers to several inputs, one file for each"):
        build_output_files(MODEL, tmp_path / "a.bin", several=True)
