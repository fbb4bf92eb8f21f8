import gzip
import hashlib
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from regard.cli._fingerprint import digest_file, digest_job
from regard.config import Search
from regard.manifest import NAME, seal


@dataclass
class Config:
    search: Search = field(default_factory=Search)


def made(seed=0, **search):
    """A model of one matrix."""
    torch.manual_seed(seed)
    return SimpleNamespace(config=Config(Search(**search)), model=nn.Linear(2, 2))


def publish(folder, **files):
    """A manifest that names these digests."""
    (folder / NAME).write_bytes(seal({"files": files, "pending": {}}))


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"a\nb\n", 2), (b"a\nb", 2), (b"\n", 1)])
def test_a_file_is_told_by_its_bytes_and_its_lines(tmp_path, text, lines):
    (tmp_path / "in.txt").write_bytes(text)
    assert digest_file(str(tmp_path / "in.txt")) == (hashlib.sha256(text).hexdigest(), lines)


def test_lines_of_a_packed_file_are_not_known_beforehand(tmp_path):
    (tmp_path / "in").write_bytes(gzip.compress(b"a\nb\n"))
    digest, lines = digest_file(str(tmp_path / "in"))
    assert lines is None
    assert digest is not None


@pytest.mark.parametrize("path", [None, "-", "/dev/null", "nowhere.txt"])
def test_what_is_no_file_has_no_digest(path):
    assert digest_file(path) == (None, None)


def test_each_part_of_the_work_changes_its_own_digest(tmp_path):
    publish(tmp_path)
    model, given = made(), digest_file(str(tmp_path / "manifest.json"))
    first = digest_job(tmp_path, model, given, {"unknown": "copy"}, nbest=1)
    assert digest_job(tmp_path, model, given, {"unknown": "copy"}, nbest=1) == first
    for other in (
        digest_job(tmp_path, model, given, {"unknown": "copy"}, nbest=2),
        digest_job(tmp_path, model, given, {"unknown": "keep"}, nbest=1),
        digest_job(tmp_path, made(beam=5), given, {"unknown": "copy"}, nbest=1),
    ):
        assert other["settings"] != first["settings"]
        assert other["model"] == first["model"]
    assert digest_job(tmp_path, made(seed=1), given, {"unknown": "copy"}, nbest=1)["model"] != first["model"]
    publish(tmp_path, **{"config.toml": "other"})
    assert digest_job(tmp_path, model, given, {"unknown": "copy"}, nbest=1)["model"] != first["model"]


def test_weights_that_a_training_publishes_after_others_were_loaded_are_not_those_of_the_work(tmp_path):
    publish(tmp_path, **{"model.safetensors": "first"})
    first = digest_job(tmp_path, made(), digest_file(None), {})
    publish(tmp_path, **{"model.safetensors": "second"})
    assert digest_job(tmp_path, made(), digest_file(None), {})["model"] == first["model"]


def test_graphs_count_by_their_manifest(tmp_path):
    model = SimpleNamespace(config=Config(), model=nn.Identity())
    publish(tmp_path, **{"step.onnx": "first"})
    first = digest_job(tmp_path, model, digest_file(None), {})
    publish(tmp_path, **{"step.onnx": "second"})
    assert digest_job(tmp_path, model, digest_file(None), {})["model"] != first["model"]


def test_a_model_in_one_file_counts_by_all_of_it(tmp_path):
    path, model = tmp_path / "model.zip", SimpleNamespace(config=Config())
    path.write_bytes(b"graphs")
    first = digest_job(path, model, digest_file(None), {})
    assert first["model"] == digest_file(str(path)).digest
    path.write_bytes(b"others")
    assert digest_job(path, model, digest_file(None), {})["model"] != first["model"]


def test_a_file_that_a_setting_names_counts_by_what_it_holds(tmp_path):
    publish(tmp_path)
    (tmp_path / "words.tsv").write_text("a\tb\n")
    model, named = made(), {"unknown": str(tmp_path / "words.tsv")}
    first = digest_job(tmp_path, model, digest_file(None), named)
    (tmp_path / "words.tsv").write_text("a\tc\n")
    assert digest_job(tmp_path, model, digest_file(None), named)["settings"] != first["settings"]


def test_a_name_that_no_file_can_have_is_none():
    assert digest_file("x" * 300) == (None, None)
