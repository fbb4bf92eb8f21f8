"""Components of users: read, digested, imported from those bytes."""

import os
import sys
from hashlib import sha256

import pytest

from regard.components import PREFIX, find_class, import_source, read_source, split_reference
from regard.errors import ConfigError

TEXT = """from dataclasses import dataclass

@dataclass(frozen=True)
class L1:
    tau: float = 1.0

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_scores.py"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my_scores.py:L1", ("my_scores.py", "L1")),
        ("C:/a/my_scores.py:L1", ("C:/a/my_scores.py", "L1")),
        ("my_scores.py", None),
        ("additive", None),
        ("additive:L1", None),
    ],
)
def test_a_reference_is_a_file_and_a_class(text, parts):
    assert split_reference(text) == parts


def test_reading_digests_and_runs_nothing(file):
    file.write_text("raise SystemExit('it ran')")
    source = read_source(file)
    assert source.digest == sha256(b"raise SystemExit('it ran')").hexdigest()


def test_the_bytes_that_were_read_are_those_that_run(file):
    source = read_source(file)
    file.write_text("class L1: changed = True")
    assert find_class(source, "L1")().tau == 1.0


def test_one_content_is_one_module_and_another_is_another(file):
    first = read_source(file)
    assert import_source(first) is import_source(read_source(file))
    file.write_text(f"{TEXT}# changed\n")
    assert import_source(read_source(file)) is not import_source(first)
    assert not list(file.parent.rglob("*.pyc"))


def test_a_file_that_cannot_be_imported_is_named_and_leaves_no_module(file):
    file.write_text("import no_such_package_of_anybody")
    source = read_source(file)
    with pytest.raises(ConfigError, match=r"my_scores\.py cannot be imported: ModuleNotFoundError: No module named"):
        import_source(source)
    assert f"{PREFIX}{source.digest[:16]}" not in sys.modules


@pytest.mark.parametrize(
    ("name", "text"), [("L2", "there is no class L2 in it; it has L1"), ("number", "number is no class")]
)
def test_a_class_that_is_not_there_is_answered_with_those_that_are(file, name, text):
    with pytest.raises(ConfigError, match=text):
        find_class(read_source(file), name)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing.py is missing; give the Python file that holds the component"):
        read_source(tmp_path / "nothing.py")
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(ConfigError, match=r"pipe\.py"):
        read_source(tmp_path / "pipe.py")
