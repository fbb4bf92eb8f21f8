"""Version and commit: read from git in a checkout, from a stamp in what was built, else the version alone."""

import re

from typer.testing import CliRunner

import regard
from regard import cli, revision


def test_a_checkout_says_its_commit():
    head = revision.read_head(revision.STAMP.parents[2])
    if head is None:  # an unpacked sdist
        assert revision.find_commit() is None or re.fullmatch("[0-9a-f]{12}", revision.find_commit())
    else:
        assert revision.describe_version("1.0") == f"regard 1.0 (commit {head})"


def test_what_was_built_says_the_commit_it_was_stamped_with(tmp_path, monkeypatch):
    package = tmp_path / "lib" / "site-packages" / "regard"
    package.mkdir(parents=True)
    monkeypatch.setattr(revision, "STAMP", package / "commit.txt")
    assert revision.describe_version("1.0") == "regard 1.0"
    (package / "commit.txt").write_text("0123456789ab\n")
    assert revision.describe_version("1.0") == "regard 1.0 (commit 0123456789ab)"


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    assert revision.read_head(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert revision.read_head(revision.STAMP.parents[2]) is None


def test_the_command_says_both():
    answer = CliRunner().invoke(cli.app, ["--version"])
    assert answer.stdout == f"{revision.describe_version(regard.__version__)}\n"


def test_the_version_is_that_of_the_citation():
    citation = (revision.STAMP.parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {regard.__version__}\n" in citation
