import gzip
import hashlib
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from regard.cli.work import source, work
from regard.config import Search


@dataclass
class Config:
    search: Search = field(default_factory=Search)


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"a\nb\n", 2), (b"a\nb", 2), (b"\n", 1)])
def test_a_file_is_told_by_its_bytes_and_its_lines(tmp_path, text, lines):
    (tmp_path / "in.txt").write_bytes(text)
    assert source(str(tmp_path / "in.txt")) == (hashlib.sha256(text).hexdigest(), lines)


def test_lines_of_a_packed_file_are_not_known_beforehand(tmp_path):
    (tmp_path / "in").write_bytes(gzip.compress(b"a\nb\n"))
    digest, lines = source(str(tmp_path / "in"))
    assert lines is None
    assert digest is not None


@pytest.mark.parametrize("path", [None, "-", "/dev/null", "nowhere.txt"])
def test_what_is_no_file_has_no_digest(path):
    assert source(path) == (None, None)


def test_each_part_of_the_work_changes_its_own_digest(tmp_path):
    (tmp_path / "manifest.json").write_bytes(b"{}")
    model, given = SimpleNamespace(config=Config()), source(str(tmp_path / "manifest.json"))
    first = work(tmp_path, model, given, {"unknown": "copy"}, nbest=1)
    assert work(tmp_path, model, given, {"unknown": "copy"}, nbest=1) == first
    for other in (
        work(tmp_path, model, given, {"unknown": "copy"}, nbest=2),
        work(tmp_path, model, given, {"unknown": "keep"}, nbest=1),
        work(tmp_path, SimpleNamespace(config=Config(Search(beam=5))), given, {"unknown": "copy"}, nbest=1),
    ):
        assert other["settings"] != first["settings"]
        assert other["model"] == first["model"]
    (tmp_path / "manifest.json").write_bytes(b"{ }")
    assert work(tmp_path, model, given, {"unknown": "copy"}, nbest=1)["model"] != first["model"]


def test_a_model_in_one_file_counts_by_all_of_it(tmp_path):
    path, model = tmp_path / "model.zip", SimpleNamespace(config=Config())
    path.write_bytes(b"graphs")
    first = work(path, model, source(None), {})
    assert first["model"] == source(str(path)).digest
    path.write_bytes(b"others")
    assert work(path, model, source(None), {})["model"] != first["model"]


def test_a_file_that_a_setting_names_counts_by_what_it_holds(tmp_path):
    (tmp_path / "manifest.json").write_bytes(b"{}")
    (tmp_path / "words.tsv").write_text("a\tb\n")
    model, named = SimpleNamespace(config=Config()), {"unknown": str(tmp_path / "words.tsv")}
    first = work(tmp_path, model, source(None), named)
    (tmp_path / "words.tsv").write_text("a\tc\n")
    assert work(tmp_path, model, source(None), named)["settings"] != first["settings"]


def test_a_name_that_no_file_can_have_is_none():
    assert source("x" * 300) == (None, None)
