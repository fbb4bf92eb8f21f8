import numpy as np
import pytest

from regard.data.axis import Text
from regard.viewer.figure import figure
from regard.viewer.trace import AttentionMap, Example, Trace

from .traces import causal, softmax, texts, translation, words

pytestmark = pytest.mark.usefixtures("loose")


def maps_of(drawn):
    return [axes.images[0] for axes in drawn.axes if axes.images]


def test_layers_are_rows_and_heads_are_columns():
    drawn = figure(causal(6, heads=3, layers=2), "heads")
    assert len(maps_of(drawn)) == 6
    assert drawn.axes[0].get_subplotspec().get_geometry()[:2] == (2, 3)
    assert {"layer 0", "layer 1", "head 0", "head 2", "words (keys)", "words (queries)"} <= set(texts(drawn))


def test_all_heads_share_one_scale_that_ends_at_the_shared_maximum():
    trace = causal(6, heads=3, layers=2)
    drawn = figure(trace, "heads")
    largest = max(attention_map.weights.max() for attention_map in trace.example().attentions)
    assert [image.norm.vmax for image in maps_of(drawn)] == pytest.approx([largest] * 6)
    assert texts(drawn).count("attention weight") == 1
    assert f"{largest:.2g}" in texts(drawn)
    assert {image.norm.vmax for image in maps_of(figure(trace, "heads", vmax=0.5))} == {0.5}


def test_one_layer_of_many_heads_goes_on_in_the_next_row():
    drawn = figure(translation(weights=softmax(10, 4, 5)), "heads")
    assert len(maps_of(drawn)) == 10
    assert drawn.axes[0].get_subplotspec().get_geometry()[:2] == (2, 8)
    assert "head 9" in texts(drawn)


def test_layers_of_another_group_and_layers_without_weights_stay_out():
    attentions = (
        AttentionMap("a", "words", "words", softmax(2, 5, 5)),
        AttentionMap("b", "words", "words", None, layer=1, statistics={"max": np.ones((2, 5))}),
        AttentionMap("c", "words", "other", softmax(4, 5, 3)),
        AttentionMap("d", "words", "words", softmax(1, 5, 5), layer=2),
    )
    trace = Trace("mixed", (Example({"words": words(5), "other": words(3)}, attentions),))
    assert len(maps_of(figure(trace, "heads", attention="a"))) == 3
    assert len(maps_of(figure(trace, "heads"))) == 4


def test_weights_below_zero_make_the_whole_grid_two_sided():
    weights = np.stack([softmax(4, 5), -softmax(4, 5)])
    images = maps_of(figure(translation(weights=weights, sums_to_one=False), "heads"))
    assert {image.get_cmap().name for image in images} == {"balance"}
    assert images[0].norm.vmin == -images[0].norm.vmax


def test_twelve_layers_of_twelve_heads_are_large_enough_to_be_read_and_each_is_named():
    weights = np.full((12, 4, 4), 0.25, np.float32)
    attentions = tuple(AttentionMap(f"layer.{layer}", "tokens", "tokens", weights, layer) for layer in range(12))
    trace = Trace("bert", (Example({"tokens": Text.of(list("abcd"))}, attentions),))
    drawn = trace.figure("heads")
    panels = [panel for panel in drawn.axes if panel.images][:144]
    assert len(panels) == 144
    inches = [panel.bbox.width / drawn.dpi for panel in panels]
    assert min(inches) >= 0.3, "in a column of print they were 0.2"
    assert [panel.get_title() for panel in panels[:12]] == ["head 0", *map(str, range(1, 12))]
    assert [panel.get_ylabel() for panel in panels[::12]] == ["layer 0", *map(str, range(1, 12))]
