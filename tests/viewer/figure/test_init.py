import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from regard.errors import MissingExtraError
from regard.viewer.figure import KINDS, figure

from .traces import causal, network, picture, softmax, translation

EVERY = """
import runpy, sys
from pathlib import Path
import matplotlib
before = dict(dict.items(matplotlib.rcParams))  # asking for the backend would import pyplot
runpy.run_path("docs/figures.py")["main"](Path(sys.argv[1]), 30)
assert "matplotlib.pyplot" not in sys.modules
assert dict(dict.items(matplotlib.rcParams)) == before
"""


def test_the_samples_can_be_drawn_and_none_imports_pyplot_or_touches_the_settings(tmp_path):
    subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:no installed font has", "-c", EVERY, str(tmp_path)],
        check=True,
        timeout=120,
    )
    kept = Path("docs/figures")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in kept.iterdir())
    assert sum(path.stat().st_size for path in kept.iterdir()) < 400_000


def test_asking_what_there_is_imports_no_matplotlib():
    code = "import sys; import regard.viewer.figure, regard.viewer.trace; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("loose")
def test_a_figure_is_matplotlibs_and_as_wide_as_asked():
    drawn = figure(translation(), "heatmap")
    assert isinstance(drawn, Figure)
    assert drawn.get_figwidth() == 3.25
    assert figure(translation(), "lines", width="page").get_figwidth() == 6.75


def test_readers_settings_change_nothing():
    plain = figure(translation(), "heatmap")
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "image.origin": "lower", "axes.facecolor": "black"}):
        styled = figure(translation(), "heatmap")
        styled.draw_without_rendering()
        assert matplotlib.rcParams["font.size"] == 30
    assert styled.get_size_inches() == pytest.approx(plain.get_size_inches())


@pytest.mark.usefixtures("loose")
def test_a_trace_draws_itself():
    assert translation().figure("heatmap", head=1).get_figwidth() == 3.25


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("regard.viewer.figure.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError,
        match=r"figures need matplotlib, which is not installed: pip install 'regard\[view\]', or pip install '.\[view\]' in a checkout",
    ):
        figure(translation(), "heatmap")


def test_another_missing_module_is_not_blamed_on_matplotlib(monkeypatch):
    monkeypatch.delitem(sys.modules, "regard.viewer.figure.lines", raising=False)
    monkeypatch.setitem(sys.modules, "regard.viewer.figure.labels", None)
    with pytest.raises(ModuleNotFoundError, match=r"regard\.viewer\.figure\.labels"):
        figure(translation(), "lines")


@pytest.mark.usefixtures("loose")
@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"kind": "pie"}, ValueError, f"there is no figure 'pie'; there are {', '.join(KINDS)}"),
        ({"width": "poster"}, ValueError, "a figure is as wide as a column or a page, got 'poster'"),
        ({"text": "image"}, ValueError, "letters are kept as 'text' or turned into a 'path', got 'image'"),
        ({"numbres": True}, TypeError, "the figure 'heatmap' has no option 'numbres'; it has numbers, vmax, title"),
        ({"kind": "strength", "query": 1}, TypeError, "the figure 'strength' has no option 'query'; it has none"),
        ({"head": 2}, ValueError, "'decoder.cross' has 2 heads, counted from 0; asked for head 2"),
        ({"kind": "strength", "head": 5}, ValueError, "'decoder.cross' has 2 heads, counted from 0; asked for head 5"),
        ({"example": 3}, IndexError, "the trace 'tiny' has 1 examples, asked for number 3"),
        ({"attention": "encoder"}, KeyError, "no attention of this trace is called 'encoder'"),
        ({"palette": "jet"}, ValueError, "there is no palette 'jet'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(asked, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(")):
        figure(translation(), **asked)


@pytest.mark.usefixtures("loose")
def test_statistics_alone_have_no_matrix_and_the_error_says_what_to_do():
    bare = translation(weights=None, statistics={"entropy": np.zeros((2, 4)), "max": np.ones((2, 4))})
    for kind in ("heatmap", "heads", "lines"):
        with pytest.raises(
            ValueError,
            match=r"of 'decoder.cross' only statistics were recorded, so there is no matrix to draw; kind 'strength'",
        ):
            figure(bare, kind)
    assert figure(bare, "strength").axes


def test_a_trace_without_attentions_says_so():
    with pytest.raises(ValueError, match="example 0 of the trace 'network' has no attention to draw; 'graph' needs none"):
        figure(network(), "heatmap")


@pytest.mark.usefixtures("loose")
def test_only_recorded_rows_are_drawn_and_named():
    drawn = figure(translation(weights=softmax(2, 2, 5), rows=(1, 3)), "heatmap")
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["追逐", "。"]
    half = causal()
    attention_map = half.attention()
    masked = type(attention_map)(
        "some", "words", "words", attention_map.weights[:, [2, 5]], allowed=attention_map.allowed, rows=(2, 5)
    )
    some = type(half)("some", (type(half.example())(half.example().axes, (masked,)),))
    image = figure(some, "heatmap").axes[0].images[0]
    assert image.get_array().mask.tolist() == (~attention_map.allowed[[2, 5]]).tolist()
    assert figure(picture(), "overlay", query=1).axes
