import numpy as np
import pytest
from matplotlib.patches import PathPatch

from regard.viewer.figure import figure
from regard.viewer.figure.lines import Link, links

from .traces import softmax, texts, trace, translation, words

pytestmark = pytest.mark.usefixtures("loose")

WEIGHTS = np.array([[0.7, 0.2, 0.1, 0.0], [0.25, 0.3, 0.25, 0.2]])


def drawn_lines(drawn):
    return [patch for axes in drawn.axes for patch in axes.patches if isinstance(patch, PathPatch)]


def test_only_the_strongest_links_are_drawn_weakest_first():
    assert links(WEIGHTS, 1) == [Link(1, 1, 0.3), Link(0, 0, 0.7)]
    assert links(WEIGHTS, 2) == [Link(0, 1, 0.2), Link(1, 0, 0.25), Link(1, 1, 0.3), Link(0, 0, 0.7)]
    assert len(links(WEIGHTS, 99)) == 7, "nothing is not a link"


def test_wide_and_dark_is_strong_and_hard_links_are_outlined():
    drawn = figure(trace(WEIGHTS[None], words(2), words(4)), "lines", strongest=1)
    weak, strong = drawn_lines(drawn)
    assert strong.get_linewidth() > weak.get_linewidth()
    assert strong.get_alpha() > weak.get_alpha()
    assert strong.get_path_effects()
    assert not weak.get_path_effects()


def test_short_sentences_lie_above_one_another_and_long_ones_stand_side_by_side():
    drawn = figure(translation(), "lines")
    assert {"汤姆", "chases", "target\n(queries)", "source\n(keys)"} <= set(texts(drawn))
    assert len(drawn.axes) == 1
    assert len(figure(trace(softmax(1, 30, 30), words(30), words(30)), "lines").axes) == 2
    assert len(figure(translation(), "lines", upright=True).axes) == 2


def test_lines_begin_and_end_at_their_words():
    drawn = figure(trace(np.eye(3)[None], words(3), words(3)), "lines")
    axes = drawn.axes[0]
    places = sorted({round(text.get_position()[0], 3) for text in axes.texts})
    ends = {
        (round(path.vertices[0][0], 3), round(path.vertices[-1][0], 3))
        for path in (line.get_path() for line in drawn_lines(drawn))
    }
    assert ends == {(place, place) for place in places}


def test_upright_lines_end_beside_their_words():
    drawn = figure(trace(np.eye(2)[:, [0, 1, 1, 0]][None], words(2), words(4)), "lines", upright=True, strongest=1)
    left, right = drawn.axes
    for line in drawn_lines(drawn):
        start, end = line.get_path().vertices[[0, -1]]
        assert start[1] in (0, 1)
        page = left.transData.transform(end)[1]
        assert right.transData.inverted().transform((0, page))[1] in (pytest.approx(0), pytest.approx(1))


def test_asking_for_no_link_is_refused():
    with pytest.raises(ValueError, match="lines shows at least the strongest link of each query, asked for 0"):
        figure(translation(), "lines", strongest=0)
