import numpy as np
import pytest
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from regard.data.axis import Index
from regard.viewer.figure import figure, maps
from regard.viewer.palettes import names, table

from .traces import causal, peak, raster, softmax, trace, translated


@pytest.mark.parametrize("palette", names())
def test_figures_use_the_very_bytes_of_the_palettes(palette):
    assert (maps.colours(palette)(np.arange(256), bytes=True)[:, :3] == table(palette)).all()


def test_every_cell_is_drawn_in_the_colour_of_its_weight():
    weights = np.zeros((1, 2, 2))
    weights[0] = [[1, 0], [0.5, 0.5]]
    drawn = figure(trace(weights, Index(2), Index(2)), "heatmap", palette="viridis")
    page = raster(drawn)
    axes = drawn.axes[0]
    for (query, key), weight in np.ndenumerate(weights[0]):
        x, y = axes.transData.transform((key, query))
        place = min(255, int(weight * 256))
        assert (page[int(page.shape[0] - y), int(x)] == table("viridis")[place]).all()


@pytest.mark.parametrize("size", [(2000, 2000), (1, 1999)])
def test_a_peak_of_one_cell_is_seen_however_small_the_picture_is(size):
    top = table("cividis")[255]
    drawn = peak(*size)
    for dpi in (300, 75):
        page = raster(drawn, dpi=dpi)
        bar = drawn.axes[0].child_axes[0].bbox.x0 / drawn.dpi * dpi
        assert (page[:, : int(bar) - 2] == top).all(-1).any(), (size, dpi)


def test_an_average_would_have_lost_that_peak():
    image = maps.Peaks(Figure().add_subplot(), np.eye(1000)[:, [0] * 1000], None)
    assert image.reduced(10, 10).max() == 1
    assert np.eye(1000)[:, [0] * 1000].reshape(10, 100, 10, 100).mean((1, 3)).max() == pytest.approx(0.01)


@pytest.mark.usefixtures("loose")
def test_cells_that_may_not_be_seen_are_masked_and_hatched():
    drawn = figure(causal(3), "heatmap")
    image = drawn.axes[0].images[0]
    assert image.get_array().mask.tolist() == [[False, True, True], [False, False, True], [False, False, False]]
    assert [patch.get_hatch() for patch in drawn.axes[0].patches] == ["//////"]
    assert not translated().axes[0].patches


def test_the_hatching_follows_runs_of_keys_and_of_equal_rows():
    allowed = np.array([[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]], bool)
    path = maps.hatched(allowed)
    assert path.vertices.reshape(-1, 5, 2)[:, [0, 2]].tolist() == [[[0.5, -0.5], [2.5, 1.5]], [[-0.5, 1.5], [0.5, 2.5]]]


def test_a_block_is_masked_only_where_nothing_of_it_may_be_seen():
    allowed = np.array([[True, False, False, False]])
    image = maps.Peaks(Figure().add_subplot(), np.array([[0.25, 0, 0, 0]]), allowed)
    assert image.reduced(1, 2).tolist() == [[0.25, None]]


@pytest.mark.usefixtures("loose")
def test_signed_weights_are_two_sided_and_keep_their_extremes():
    weights = np.zeros((1, 4, 400))
    weights[0, 1, 7], weights[0, 2, 300] = -0.8, 0.5
    drawn = figure(trace(weights, Index(4), Index(400), sums_to_one=False), "heatmap")
    image = drawn.axes[0].images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    assert image.get_cmap().name == "balance"
    assert image.reduced(4, 20)[1, 0] == pytest.approx(-0.8)
    assert image.reduced(4, 20)[2, 15] == pytest.approx(0.5)


@pytest.mark.usefixtures("loose")
def test_long_axes_follow_the_square_root_and_the_bar_says_so():
    assert type(maps.scale(1.0, 0.0, 64)).__name__ == "Normalize"
    assert isinstance(maps.scale(1.0, 0.0, 65), PowerNorm)
    short, long = translated(), figure(causal(65), "heatmap")
    assert short.axes[0].child_axes[0].get_ylabel() == "attention weight"
    assert long.axes[0].child_axes[0].get_ylabel().replace("\n", " ") == "attention weight, square-root scale"
    assert long.axes[0].images[0].norm.vmax == 1


def test_what_becomes_of_a_large_matrix_is_told():
    drawn = figure(trace(softmax(1, 3, 1500), Index(3), Index(1500)), "heatmap")
    image = drawn.axes[0].images[0]
    assert maps.reduced_to(drawn, image, 300.0).startswith("3 x 1500 weights reduced to 3 x ")
    assert maps.reduced_to(drawn, image, 3000.0) == ""
