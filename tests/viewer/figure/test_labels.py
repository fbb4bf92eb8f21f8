import itertools
from functools import cache

import numpy as np
import pytest
from matplotlib.transforms import Affine2D

from regard.data.axis import Audio, Index, Series, Text
from regard.viewer.figure import figure, fonts
from regard.viewer.figure.labels import dates, labels, role, shown, wide, widths

from .traces import causal, series, softmax, sound, trace, translation, words


def corners(label):
    """The four corners of a text as it lies on the page."""
    angle = label.get_rotation()
    label.set_rotation(0)
    box = label.get_window_extent()
    label.set_rotation(angle)
    turned = label.get_window_extent()
    middle = ((turned.x0 + turned.x1) / 2, (turned.y0 + turned.y1) / 2)
    centred = box.corners()[[0, 1, 3, 2]] - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]
    return Affine2D().rotate_deg(angle).transform(centred) + middle


def apart(one, other):
    """Whether a line can be drawn between two rectangles (a side of one of them will do)."""
    for shape in (one, other):
        for start, end in ((0, 1), (1, 2)):
            normal = np.array([-1, 1]) * (shape[end] - shape[start])[::-1]
            first, second = one @ normal, other @ normal
            if first.max() <= second.min() + 1e-6 or second.max() <= first.min() + 1e-6:
                return True
    return False


def shown_labels(drawn):
    drawn.draw_without_rendering()
    found = []
    for axes in drawn.axes:
        for ruler in (axes.xaxis, axes.yaxis):
            low, high = sorted(ruler.get_view_interval())
            ticks = [tick for tick in ruler.get_major_ticks() if low <= tick.get_loc() <= high]
            both = [label for tick in ticks for label in (tick.label1, tick.label2)]
            found.append([label for label in both if label.get_visible() and label.get_text()])
    return found


CASES = {
    "few words": lambda: figure(translation(), "heatmap"),
    "words": lambda: figure(trace(softmax(1, 20, 12), words(20), words(12)), "heatmap"),
    "many words": lambda: figure(causal(80), "heatmap"),
    "page": lambda: figure(causal(30), "heatmap", width="page"),
    "chinese": lambda: figure(trace(softmax(1, 9, 9), Text.of(["你好吗"] * 9), Text.of(["世界", "很", "大"] * 3)), "heatmap"),
    "long tokens": lambda: figure(trace(softmax(1, 3, 3), Text.of(["x" * 10_000, "b", "c"]), Text.of(["Donaudampfschiff" * 3, "y", "z"])), "heatmap"),
    "numbers": lambda: figure(trace(softmax(1, 300, 500), Index(300), Index(500)), "heatmap"),
    "seconds": lambda: figure(sound(), "overlay"),
    "dates": lambda: figure(series(), "overlay", width="page"),
    "strength": lambda: figure(causal(30), "strength"),
    "upright lines": lambda: figure(trace(softmax(1, 90, 30), words(90), words(30)), "lines"),
}  # fmt: skip


@cache
def drawing(case):
    return CASES[case]()


@pytest.mark.parametrize("case", CASES)
def test_labels_never_overlap(case):
    for names in shown_labels(drawing(case)):
        for one, other in itertools.pairwise(map(corners, names)):
            assert apart(one, other), [name.get_text() for name in names]


@pytest.mark.parametrize("case", ["few words", "chinese", "long tokens", "numbers", "dates", "strength"])
def test_nothing_that_is_written_leaves_the_page(case):
    drawn = drawing(case)
    for name in itertools.chain(*shown_labels(drawn)):
        box = name.get_window_extent()
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= drawn.bbox.width + 1
        assert box.y1 <= drawn.bbox.height + 1


def test_all_labels_are_there_where_they_fit():
    across, down = shown_labels(drawing("few words"))[:2]
    assert [name.get_text() for name in across] == ["Tom", "chases", "Jerry", ".", "<eos>"]
    assert [name.get_text() for name in down] == ["汤姆", "追逐", "杰瑞", "。"]


def test_only_words_in_letters_are_slanted():
    assert {name.get_rotation() for name in shown_labels(drawing("few words"))[0]} == {45}
    assert {name.get_rotation() for name in shown_labels(drawing("chinese"))[0]} == {0}
    assert {name.get_rotation() for name in shown_labels(drawing("numbers"))[0]} == {0}


def test_chinese_that_is_too_wide_stands_upright():
    keys = Text.of(["千里之外"] * 12, lang="zh")
    names = shown_labels(figure(trace(softmax(1, 4, 12), words(4), keys), "heatmap"))[0]
    assert [name.get_text() for name in names] == ["千\n里\n之\n外"] * 12


def test_numbers_are_named_at_round_ones():
    across, down = shown_labels(drawing("numbers"))[:2]
    for names in (across, down):
        steps = np.diff([int(name.get_text()) for name in names])
        assert len(set(steps)) == 1
        assert str(steps[0])[0] in "125"


def test_hours_are_named_at_whole_days():
    bottom = [names for names in shown_labels(drawing("dates")) if names and "00:00" in names[0].get_text()][-1]
    assert {name.get_text()[6:] for name in bottom} <= {"00:00", "06:00", "12:00", "18:00"}


@pytest.mark.parametrize(
    ("label", "printed"),
    [
        ("cat", "cat"), ("", "∅"), (" ", "␣"), ("    ", "␣␣␣"), ("a\nb", "a↵b"), ("\t", "→"), ("\x00", "[0]"),
        ("\ud800", "[D800]"), ("\u202e", "[202E]"), ("$x^2$", "$x^2$"), ("\u2028", "[2028]"), ("y" * 30, "y" * 19 + "…"),
    ],
)  # fmt: skip
def test_tokens_are_made_visible(label, printed):
    assert shown(label) == printed


@pytest.mark.usefixtures("loose")
def test_hostile_tokens_are_drawn_as_they_are(tmp_path):
    tokens = ["$\\frac{1}{0}$", "</script>", "]]>", "a\x07b", "\udcff", "<!--", "%s{}", "\\"]
    drawn = figure(trace(softmax(1, 8, 8), Text.of(tokens), Text.of(tokens)), "heatmap")
    for kind in ("png", "svg", "pdf"):
        drawn.savefig(tmp_path / f"hostile.{kind}", dpi=50)
    assert "&lt;/script&gt;" in (tmp_path / "hostile.svg").read_text(encoding="utf-8")
    assert "$\\frac{1}{0}$" in [name.get_text() for name in shown_labels(drawn)[1]]


def test_places_have_short_names():
    assert labels(Audio(3, 0.25)) == ["0", "0.25", "0.5"]
    assert labels(Index(2)) == ["0", "1"]
    assert labels(Series(np.array([0, 86400.0]), np.zeros((2, 1)), ("x",))) == ["1970-01-01", "1970-01-02"]
    assert dates(np.array([60.0, 3600])) == ["01-01 00:01", "01-01 01:00"]
    assert dates(np.array([1.0, 2])) == ["00:00:01", "00:00:02"]
    assert labels(Series(np.array([0.5]), np.zeros((1, 1)), ("x",), dates=False)) == ["0.5"]


def test_an_axis_says_its_role_and_its_unit():
    assert role("source", Index(3), "keys") == "source (keys)"
    assert role("frames", Audio(3, 0.1), "keys") == "frames (keys), s"


def test_square_characters_are_told_from_letters():
    assert wide("汤姆")
    assert wide("。")
    assert not wide("Tom")
    assert not wide("")


@pytest.mark.skipif("Noto Sans CJK SC" not in fonts.installed(), reason="needs the package fonts-noto-cjk")
def test_a_square_character_is_as_wide_as_it_is_high():
    assert widths(["汤"])[0] == pytest.approx(8, abs=0.5)
