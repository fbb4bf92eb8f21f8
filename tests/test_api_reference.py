"""The API reference: every public name is on a page and has a description; Sphinx builds it without a warning."""

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import regard
import regard.attention
from regard import registry

FOLDER = Path(__file__).parents[1] / "docs" / "api"


def load_pages():
    spec = importlib.util.spec_from_file_location("pages", FOLDER / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = load_pages()


@pytest.mark.parametrize("name", PAGES.public_names())
def test_a_public_name_has_a_description(name):
    thing = PAGES.resolve(name)
    description = inspect.getdoc(thing) or ""
    assert description, name
    if inspect.isclass(thing):
        assert vars(thing).get("__doc__"), f"{name} has only the description of its base"
    assert description[0].isupper() or description[0] == "`", description


def test_every_public_name_is_on_a_page(tmp_path):
    PAGES.write_pages(tmp_path)
    pages = "".join(path.read_text() for path in (tmp_path / "generated").glob("*.rst"))
    missing = [name for name in PAGES.public_names() if f":: {name}\n" not in pages]
    assert not missing
    for kind in PAGES.ATTENTION:
        assert all(f".{registry.class_name(name)}\n" in pages for name in registry.names(kind))


def test_pages_that_did_not_change_are_left_alone(tmp_path):
    PAGES.write_pages(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "generated").iterdir()}
    PAGES.write_pages(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "generated").iterdir()} == before


def test_the_reference_names_no_module_that_is_gone():
    for _, modules in PAGES.MODULES.values():
        assert all(importlib.util.find_spec(module) for module in modules)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_sphinx_builds_the_reference_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="Sphinx comes with regard[docs]")
    pytest.importorskip("furo", reason="the theme comes with regard[docs]")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(FOLDER), str(tmp_path / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "html" / "generated" / "score.html").read_text()
    assert "https://arxiv.org/abs/1409.0473" in page
    assert regard.__version__ in page
