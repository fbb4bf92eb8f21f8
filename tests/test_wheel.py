"""What is installed is whole: the page lies in the wheel, and nobody who installs it needs Node.js."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=TOP,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    [path] = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        opened.extractall(folder / "installed")
        return folder / "installed", opened.namelist()


def test_the_page_and_everything_it_needs_is_in_the_wheel(wheel):
    _, names = wheel
    for needed in ("static/viewer.html", "static/palettes.json", "io/schema.json"):
        assert f"regard/viewer/{needed}" in names
    assert "regard/py.typed" in names
    assert {"regard/decoding/engines/cpp/lanes.hpp", "regard/decoding/engines/cpp/search.cpp"} < set(names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".tsx"))]


def test_what_was_installed_writes_a_page_without_node(wheel, tmp_path):
    code = (
        "import numpy, regard, sys; assert sys.argv[1] in regard.__file__;"
        "trace = regard.Trace.from_arrays(numpy.eye(3, dtype='float32'), ['a', 'b', 'c']);"
        "trace.save('t.attn.safetensors'); trace.to_html('t.html')"
    )
    alone = {"PYTHONPATH": str(wheel[0]), "PATH": "", "HOME": str(tmp_path), "LANG": os.environ.get("LANG", "C.UTF-8")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(wheel[0])], cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert 'id="payload"' in (tmp_path / "t.html").read_text(encoding="utf-8")
