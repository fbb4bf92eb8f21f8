import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.cli.view import _is_input, load_traces
from regard.errors import DataError
from regard.viewer.trace import Trace

from .conftest import regard


def asked(*arguments):
    """The command in this process, which starts at once; four tests here have one of its own, as a user has."""
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "a.attn.safetensors"
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], np.float32)
    Trace.from_arrays(weights, query=["汤姆", "追"], key=["Tom", "chases", "Jerry"]).save(path)
    return path


def test_a_trace_becomes_one_page(trace, tmp_path):
    done = regard("view", trace, "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "汤姆" in page
    assert f"({(tmp_path / 'page.html').stat().st_size:,} bytes, needs no network)" in done.stdout


def test_two_traces_become_one_page_that_compares_them(trace, tmp_path):
    done = asked("view", trace, trace, "--html", tmp_path / "page.html", "--language", "zh", "--state", "#q=1")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('"training"') >= 2
    assert '"language":"zh"' in page
    assert '"state":"#q=1"' in page


def test_a_model_is_asked_and_shown(run_directory, tmp_path):
    done = asked("view", run_directory, "Tom chases Jerry", "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"text":"Tom chases Jerry"' in page
    assert '"candidates":[[' in page


def test_a_prediction_leaves_a_trace_that_can_be_viewed(run_directory, tmp_path):
    path = tmp_path / "t.attn.safetensors"
    assert regard("predict", run_directory, "Tom chases Jerry", "--trace", path).returncode == 0
    done = asked("view", path, "--figure", "heatmap", "--out", tmp_path / "figure.pdf")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_a_page_is_served_until_it_is_interrupted(trace):
    command = [sys.executable, "-m", "regard", "view", str(trace), "--no-browser"]
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731 - a job in the background is born deaf to it
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as running:
        url = running.stderr.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", url)
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b'id="payload"' in answer.read()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["nowhere.attn.safetensors"], "there is no nowhere.attn.safetensors; give a trace"),
        (["TRACE", "Tom"], "is a trace, which holds its inputs already; drop 'Tom'"),
        (["TRACE", "TRACE", "TRACE"], "a page shows one trace or compares two, got 3"),
        (["RUN"], "say what to show it: regard view"),
        (["RUN", "zzz"], "has no token of 'zzz'"),
        (["TRACE", "--figure", "heatmap"], "say where the figure goes: --out fig.pdf, .svg or .png"),
        (["TRACE", "--figure", "heatmap", "--out", "x.doc"], "a figure is a .pdf, .svg or .png"),
        (["TRACE", "--figure", "pie", "--out", "x.pdf"], "heatmap"),
        (
            ["TRACE", "--figure", "heatmap", "--out", "x.pdf", "--attention", "no"],
            "no attention of this trace is called 'no'",
        ),
        (["TRACE", "--out", "x.pdf"], "--out is for a figure"),
        (["TRACE", "--budget", "1MB"], "--budget is for a page that is written"),
        (["TRACE", "--html", "x.html", "--budget", "lots"], "a budget is a size such as 16MB"),
        (["TRACE", "--html", "x.html", "--budget", "10"], "the statistics alone take"),
        (["TRACE", "--html", "x.html", "--language", "fr"], "the page speaks en and zh, got 'fr'"),
        (["TRACE", "--html", "x.html", "--figure", "heatmap"], "--figure and --html are two things"),
    ],
)
def test_a_mistake_is_one_paragraph_and_exit_code_2(given, told, trace, run_directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"TRACE": trace, "RUN": run_directory}
    done = asked("view", *(names.get(each, each) for each in given))
    assert done.exit_code == 2, done.stdout
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_broken_trace_names_itself(trace, tmp_path):
    broken = tmp_path / "broken.attn.safetensors"
    shutil.copy(trace, broken)
    broken.write_bytes(broken.read_bytes()[:-10])
    done = regard("view", broken, "--html", tmp_path / "page.html")
    assert done.returncode == 2
    assert str(broken) in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_picture_or_a_folder_of_frames_behind_a_model_is_what_it_is_asked(tmp_path, monkeypatch):
    module = sys.modules["regard.cli.view"]
    run, clip, picture = tmp_path / "run", tmp_path / "clip", tmp_path / "photo.png"
    for folder in (run, clip):
        folder.mkdir()
    (run / "manifest.json").write_text("{}")
    picture.write_bytes(b"")
    asked = []
    monkeypatch.setattr(module, "_trace", lambda path, text, *_: asked.append((path, text)) or Trace("a", ()))
    module.load_traces([str(run), str(picture)], None, "cpu")
    module.load_traces([str(run), str(clip)], None, "cpu")
    assert asked == [(run, str(picture)), (run, str(clip))]


def test_a_text_that_is_too_long_for_a_name_is_an_input(tmp_path):
    assert _is_input(Path("Tom chases Jerry " * 40), 1)
    with pytest.raises(DataError, match=r"there is no (Tom chases Jerry ){4}Tom chases J\.\.\.; give a trace"):
        load_traces(["Tom chases Jerry " * 40], None, "cpu")
