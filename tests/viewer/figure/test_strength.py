import numpy as np
import pytest

from regard.viewer.figure import figure
from regard.viewer.metrics.strength import summary

from .traces import causal, softmax, texts, translation

pytestmark = pytest.mark.usefixtures("loose")


def curve(axes):
    """The bold line of a panel: the last with as many points as places."""
    return np.asarray(axes.lines[-1].get_ydata())


def test_four_curves_stand_below_their_definitions():
    drawn = figure(causal(), "strength")
    written = " ".join(texts(drawn)).replace("\n", " ")
    for definition in (
        "received: column sum / what uniform attention gives",
        "sharpness: largest weight; effective keys, exp(entropy)",
        "focus: mean key position, ± its spread",
        "sink: share on special keys",
    ):
        assert definition in written


def test_the_curves_are_those_of_the_summary():
    trace = causal()
    found = summary(trace.attention(), trace.example().axes)
    received, sharp, focus, sink, effective = figure(trace, "strength", head=1).axes
    assert np.asarray(received.lines[1].get_ydata()) == pytest.approx(found.received[1])
    assert curve(sharp) == pytest.approx(found.largest[1])
    assert curve(effective) == pytest.approx(found.effective[1])
    assert curve(focus) == pytest.approx(found.focus[1])
    assert curve(sink) == pytest.approx(found.sink[1])


def test_the_mean_of_the_heads_is_bold_over_a_line_for_each():
    trace = causal(heads=3)
    found = summary(trace.attention(), trace.example().axes)
    sink = figure(trace, "strength").axes[3]
    assert len(sink.lines) == 4
    assert curve(sink) == pytest.approx(found.sink.mean(0))
    assert len(figure(causal(heads=20), "strength").axes[3].lines) == 1


def test_received_attention_is_drawn_between_a_half_and_twice_uniform():
    received = figure(causal(), "strength").axes[0]
    assert received.get_yscale() == "log"
    band = received.patches[0].get_bbox()
    assert (band.y0, band.y1) == (0.5, 2)
    assert {"1/4", "1", "4"} <= {label.get_text() for label in received.get_yticklabels()}


def test_a_key_that_receives_nothing_is_marked_at_the_floor():
    weights = np.zeros((1, 4, 5))
    weights[:, :, :4] = softmax(1, 4, 4)
    received = figure(translation(weights=weights), "strength").axes[0]
    assert np.asarray(received.lines[-1].get_xdata()).tolist() == [4]
    assert received.lines[-1].get_marker() == "v"


def test_many_sinks_are_counted():
    drawn = figure(translation(key=type(translation().example().axes["source"]).of(list(".,;:!"))), "strength")
    assert "sink: share on ., ,, ;, : and 1 more" in " ".join(texts(drawn)).replace("\n", " ")
