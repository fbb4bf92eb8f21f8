import base64
import html
import os
import re
import subprocess
import sys
import types
import urllib.request

import numpy as np
import pytest

import regard
from regard.data.axis import Index, Text
from regard.viewer.html import view as viewing
from regard.viewer.html.view import View, describe_traces, framed, view
from regard.viewer.trace import AttentionMap, Example, Trace

from ..invented import translation


@pytest.fixture
def notebook(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell, version_info=(9, 0, 0)))


@pytest.mark.usefixtures("notebook")
def test_a_notebook_gets_the_page_in_a_sandbox_over_a_picture_and_text():
    shown = regard.view(translation())
    assert shown.url is None
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    frame = re.search(
        r'<iframe class="regard-view" title="attention" sandbox="allow-scripts allow-downloads" srcdoc="([^"]*)"',
        bundle["text/html"],
    )
    assert html.unescape(frame[1]) == shown.html(viewing.INLINE)
    assert bundle["text/html"].index("<img") < bundle["text/html"].index("<iframe")
    assert "transformer: 1 example, 6 attentions" in bundle["text/plain"]


@pytest.mark.usefixtures("notebook")
def test_a_notebook_without_matplotlib_has_no_picture_and_says_nothing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert set(view(translation())._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_a_picture_is_optional_in_a_frame():
    assert "<img" not in framed("<p>", None)
    assert 'srcdoc="&lt;p&gt;"' in framed("<p>", None)


def test_a_script_serves_and_says_where(capsys, monkeypatch):
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    shown = view(translation(), translation(2), state="#q=2", browser=False)
    try:
        assert shown.url.endswith("/#q=2")
        assert shown.url in capsys.readouterr().err
        with urllib.request.urlopen(shown.url.split("#")[0], timeout=10) as answer:
            assert b'id="payload"' in answer.read()
    finally:
        shown.close()
    assert shown.url is None


def test_a_remote_machine_is_told_how_to_reach_it(capsys, monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "somewhere")
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail("nobody sits there"))
    shown = view(translation())
    number = shown.server.http.server_port
    shown.close()
    assert f"ssh -L {number}:127.0.0.1:{number} HOST" in capsys.readouterr().err


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch):
    opened = []
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setattr("webbrowser.open", opened.append)
    shown = view(translation())
    assert opened == [shown.url]
    shown.close()


def test_a_page_is_saved_whole(tmp_path):
    path = View([translation()]).save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == View([translation()]).html()


def test_a_script_does_not_end_before_its_page_is_closed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy, threading, regard\n"
        "shown = regard.view(regard.Trace.from_arrays(numpy.eye(3, dtype='float32'), ['a', 'b', 'c']), browser=False)\n"
        "print(next(each for each in threading.enumerate() if each.name == 'regard view').daemon)\n"
        "shown.close()\n",
        encoding="utf-8",
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert ended.stdout == "False\n", ended.stderr


AXES = {"target": Text.of(["汤姆", "追"]), "source": Text.of(["Tom", "chases", "Jerry"])}


def test_three_lines_say_what_it_is_what_was_found_and_how_it_was_recorded():
    weights = np.array([[[0.9, 0.1, 0.0], [0.2, 0.5, 0.3]]], np.float32)
    trace = Trace("run", (Example(AXES, (AttentionMap("decoder.cross", "target", "source", weights, source="reference"),)),))
    assert describe_traces([trace]).split("\n") == [
        "run: 1 example, 1 attention",
        "decoder.cross: '汤姆' reads mostly 'Tom', 0.90",
        "decoder.cross: reference, which forms its weights",
    ]


def test_statistics_alone_are_told_in_effective_keys():
    attention_map = AttentionMap("a", "q", "k", None, statistics={"entropy": np.log(np.full((1, 2), 2.5))})
    lines = describe_traces([Trace("run", (Example({"q": Index(2), "k": Index(3)}, (attention_map,)),))]).split("\n")
    assert lines[1] == "a spreads over 2.5 keys on average; only statistics were recorded"


def test_a_trace_without_attention_says_so():
    assert "no attention was recorded" in describe_traces([Trace("none", (Example(AXES, ()),))])
