"""What is installed is whole: the page lies in the wheel, and nobody who installs it needs Node.js."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import regard
from regard.revision import find_commit, read_head

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
    assert {"regard/decoding/engines/cpp/simd.hpp", "regard/decoding/engines/cpp/search.cpp"} < set(names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".tsx"))]


def test_the_commit_is_stamped_into_the_wheel(wheel):
    head = read_head(TOP)
    assert head is None or (wheel[0] / "regard" / "commit.txt").read_text().strip() == head


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


SMOKE = """
import sys, regard
assert sys.prefix in regard.__file__, regard.__file__
run = regard.train("reverse", data={"samples": 40}, model={"hidden_size": 8}, train={"max_steps": 2}, out="run", quiet=True)
assert run.load("cpu").predict("a b").target
print(regard.__version__)
"""


def run_in(folder, *command):
    """Output of a command in a folder, without this checkout's package on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", ["sdist", "wheel"])
def test_what_is_built_installs_into_a_clean_environment_and_trains(target, tmp_path):
    run_in(TOP, sys.executable, "-m", "hatchling", "build", "-t", target, "-d", tmp_path)
    [built] = tmp_path.glob("regard-*")
    commit = find_commit()
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # those of this environment, and not its packages
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    run_in(tmp_path, python, *install, built)
    assert run_in(tmp_path, python, "-c", SMOKE) == f"{regard.__version__}\n"
    said = run_in(tmp_path, python.with_name("regard"), "--version")
    assert said == f"regard {regard.__version__}" + (f" (commit {commit})" if commit else "") + "\n"
    assert "reverse" in run_in(tmp_path, python.with_name("regard"), "list", "tasks")
