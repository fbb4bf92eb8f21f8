import dataclasses

import numpy as np
import pytest

from regard.data.axis import Image, Text
from regard.viewer.figure import figure
from regard.viewer.trace import AttentionMap, Example, Trace

from .traces import picture, series, softmax, sound, texts, translation

pytestmark = pytest.mark.usefixtures("loose")


def test_patches_are_tinted_over_a_grey_picture():
    trace = picture()
    drawn = figure(trace, "overlay", query=[1, 2])
    plain, one, two = [axes for axes in drawn.axes if len(axes.images) and axes.get_label() != "<colorbar>"]
    assert len(plain.images) == 1
    pixels = one.images[0].get_array()
    assert (pixels[..., 0] == pixels[..., 2]).all(), "grey"
    weights = trace.attention().weights[0]
    assert np.asarray(one.images[1].get_array()) == pytest.approx(weights[1, 1:].reshape(3, 4))
    assert np.asarray(two.images[1].get_array()) == pytest.approx(weights[2, 1:].reshape(3, 4))
    assert one.images[1].norm.vmax == two.images[1].norm.vmax == pytest.approx(weights[1:, 1:].max())
    assert list(one.images[1].get_extent()) == [0, 16, 12, 0]


def test_what_goes_to_no_patch_is_told():
    trace = picture()
    assert f"red\nCLS {trace.attention().weights[0, 1, 0]:.2f}" in texts(figure(trace, "overlay", query=1))
    assert "red" in texts(figure(picture(prefix=()), "overlay", query=1))


def test_a_picture_without_pixels_still_has_its_patches():
    drawn = figure(picture(pixels=False), "overlay", width="page")
    assert sum(len(axes.images) == 2 for axes in drawn.axes) == 3


def test_up_to_eight_queries_are_shown_where_none_was_chosen():
    assert len(figure(series(), "overlay").axes) == 9
    many = series()
    attention_map = many.attention()
    assert len(attention_map.weights[0]) == 8
    assert len(figure(sound(), "overlay").axes) == 5


def test_a_spectrogram_lies_above_what_each_query_read():
    drawn = figure(sound(spectrogram=np.random.default_rng(0).random((20, 200))), "overlay")
    top = drawn.axes[0]
    assert top.images[0].get_extent() == [-0.5, 49.5, 0, 20]
    assert [axes.get_ylabel() for axes in drawn.axes] == ["bin", "四", "月", "九", "日"]
    assert drawn.axes[-1].get_xlabel() == "source (keys), s"
    assert drawn.axes[-1].get_xlim() == (-0.5, 49.5)


def test_a_wave_is_drawn_where_there_is_no_spectrogram():
    drawn = figure(sound(sound=np.sin(np.arange(16000) / 50), rate=8000), "overlay", query=0)
    assert len(drawn.axes[0].lines[0].get_xdata()) == 16000
    assert len(drawn.axes) == 2


def test_one_query_is_also_shaded_behind_what_it_read():
    trace = series()
    drawn = figure(trace, "overlay", query=3)
    shade = np.asarray(drawn.axes[0].images[0].get_array())
    weights = trace.attention().weights[0, 3]
    assert shade[0, :, 3] == pytest.approx(0.6 * np.sqrt(weights / weights.max()))
    assert not figure(trace, "overlay", query=[3, 4]).axes[0].images


def test_forecasts_are_dashed_after_a_line():
    drawn = figure(series(split=40), "overlay", query=0)
    lines = drawn.axes[0].lines
    assert len(lines[0].get_xdata()) == 40
    assert len(lines[1].get_xdata()) == 9, "from the last known moment on"
    assert lines[1].is_dashed()
    assert "forecast" in texts(drawn)
    known = figure(series(split=None, columns=1), "overlay", query=0)
    assert "forecast" not in texts(known)
    assert known.axes[0].get_ylabel() == "column 0"


def test_a_query_that_was_not_recorded_is_named():
    with pytest.raises(ValueError, match=r"query 8 of 'decoder.cross' was not recorded; there are 0 to 7"):
        figure(series(), "overlay", query=8)
    some = translation(weights=softmax(1, 2, 5), rows=(0, 3))
    with pytest.raises(ValueError, match=r"query 1 of 'decoder.cross' was not recorded; there are 0, 3"):
        figure(some, "overlay", query=1)


def test_text_has_no_overlay_and_the_error_says_what_shows_it():
    with pytest.raises(
        ValueError,
        match="overlay needs keys that are a picture, a sound or a series; 'source' is of kind 'text': 'heatmap' and 'lines' show it",
    ):
        figure(translation(), "overlay")


def signed(trace):
    """The same trace with weights of both signs."""
    example, attention_map = trace.example(), trace.attention()
    weights = np.where(np.arange(attention_map.weights.shape[2]) % 2, -2 * attention_map.weights, attention_map.weights)
    turned = dataclasses.replace(attention_map, weights=weights, sums_to_one=False)
    return Trace("signed", (Example(example.axes, (turned,)),))


def test_negative_weights_have_the_other_colour_and_lie_below_the_line():
    trace = signed(picture())
    tinted = figure(trace, "overlay", query=1).axes[1].images[1]
    assert tinted.get_cmap().name == "balance"
    assert tinted.norm.vmin == -tinted.norm.vmax == pytest.approx(-np.abs(trace.attention().weights[0, 1, 1:]).max())
    trace = signed(sound())
    strip = figure(trace, "overlay", query=0).axes[1]
    assert strip.get_ylim()[0] == pytest.approx(1.05 * trace.attention().weights[0, 0].min())


def captioned(words: int) -> Trace:
    axes = {"caption": Text.of([f"word{place}" for place in range(words)]), "patches": Image((2, 2), (8, 8))}
    weights = np.full((1, words, 4), 0.25, np.float32)
    return Trace("caption", (Example(axes, (AttentionMap("cross", "caption", "patches", weights),)),))


def test_every_word_of_a_caption_is_shown_and_what_is_left_out_is_said():
    titles = [panel.get_title() for panel in captioned(10).figure("overlay").axes]
    assert [title for title in titles if title.startswith("word")] == [f"word{place}" for place in range(10)]
    long = captioned(80).figure("overlay", width="page")
    assert sum(panel.get_title().startswith("word") for panel in long.axes) == 63
    assert long.get_suptitle() == "63 of 80 queries"
