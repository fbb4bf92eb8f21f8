"""The built page that lies in the package is the one that these sources give."""

import hashlib
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from .node import VIEWER, modules, npm

STATIC = Path(str(resources.files("regard.viewer"))) / "static"


def digest() -> str:
    """As viewer/vite.config.ts says: SHA-256 over the lines "PATH SHA256" of all sources, sorted by path."""
    skipped = {"node_modules", "dist", "coverage"}
    paths = [each for each in VIEWER.rglob("*") if each.is_file() and not skipped & set(each.relative_to(VIEWER).parts)]
    names = sorted((each.relative_to(VIEWER).as_posix().encode(), each) for each in paths)
    lines = [f"{name.decode()} {hashlib.sha256(each.read_bytes()).hexdigest()}\n" for name, each in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_page_was_built_from_these_sources():
    assert (STATIC / "SOURCES.sha256").read_text(encoding="utf-8").strip() == digest(), "the sources changed: make viewer"


def test_building_again_gives_the_same_bytes(tmp_path):
    modules()
    done = subprocess.run(["npx", "vite", "build", "--outDir", str(tmp_path)], cwd=VIEWER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "viewer.html").read_bytes() == (STATIC / "viewer.html").read_bytes()


def test_the_sources_have_the_types_they_say():
    done = npm("check")
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(300)
def test_the_sources_pass_their_own_tests():
    done = npm("test", timeout=280)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_page_stays_small():
    import gzip

    assert len(gzip.compress((STATIC / "viewer.html").read_bytes())) < 150_000


def test_nothing_in_the_lock_file_names_where_it_came_from():
    assert '"resolved"' not in (VIEWER / "package-lock.json").read_text(encoding="utf-8")
