import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.figure import figure

from .traces import causal, softmax, texts, trace, translated, translation


def test_queries_go_down_and_keys_across_with_their_names_on_top():
    axes = translated().axes[0]
    assert axes.get_xlabel() == "source (keys)"
    assert axes.get_ylabel() == "target (queries)"
    assert axes.xaxis.get_ticks_position() == "top"
    assert axes.xaxis.get_label_position() == "top"
    assert axes.get_ylim() == (3.5, -0.5)
    assert axes.images[0].origin == "upper"
    assert axes.images[0].get_interpolation() == "nearest"


@pytest.mark.usefixtures("loose")
def test_one_matrix_ends_at_one_whatever_its_largest_weight():
    assert figure(translation(weights=np.full((2, 4, 5), 0.2)), "heatmap").axes[0].images[0].norm.vmax == 1
    assert figure(translation(), "heatmap", vmax=0.5).axes[0].images[0].norm.vmax == 0.5
    beyond = figure(translation(weights=np.full((2, 4, 5), 3.0), sums_to_one=False), "heatmap")
    assert beyond.axes[0].images[0].norm.vmax == 3


@pytest.mark.usefixtures("loose")
def test_a_head_or_the_mean_of_all_is_shown():
    drawn = translation()
    weights = drawn.attention().weights
    assert np.asarray(figure(drawn, "heatmap", head=1).axes[0].images[0].get_array()) == pytest.approx(weights[1])
    assert np.asarray(figure(drawn, "heatmap").axes[0].images[0].get_array()) == pytest.approx(weights.mean(0))


@pytest.mark.usefixtures("loose")
def test_cells_are_square_under_sixty_a_side():
    assert figure(causal(59), "heatmap").axes[0].get_aspect() == 1
    assert figure(causal(60), "heatmap").axes[0].get_aspect() == "auto"


def test_the_map_fills_its_figure():
    for shape in ((4, 5), (20, 4), (3, 30)):
        drawn = figure(trace(softmax(1, *shape), Index(shape[0]), Index(shape[1])), "heatmap")
        box = drawn.axes[0].get_tightbbox()
        assert box.height == pytest.approx(drawn.bbox.height, abs=12), shape
        assert drawn.get_figheight() < 5.5


@pytest.mark.usefixtures("loose")
def test_numbers_are_written_up_to_twelve_a_side_and_refused_beyond():
    written = texts(figure(translation(weights=np.full((1, 4, 5), 0.25)), "heatmap", numbers=True))
    assert written.count(".25") == 20
    assert ".25" not in texts(figure(translation(weights=np.full((1, 4, 5), 0.25)), "heatmap"))
    with pytest.raises(ValueError, match="numbers can be read up to 12 x 12 cells, this has 13 x 13; leave numbers out"):
        figure(causal(13), "heatmap", numbers=True)
    assert "1" in [text for text in texts(figure(causal(2), "heatmap", numbers=True)) if text != "word1"]


@pytest.mark.usefixtures("loose")
def test_a_title_is_written_when_given():
    assert "Figure one" in texts(figure(translation(), "heatmap", title="Figure one"))
