"""Every rule of an axis, broken one at a time."""

import numpy as np
import pytest

from regard.data.axis import Audio, Image, Index, Series, Text
from regard.viewer.io.check import check
from regard.viewer.trace import Example, Trace

from .traces import AXES, LOOK, forced, refuses, trace


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (Text(("a", "b"), "a b", ((0, 1),)), "2 pieces need as many spans, got 1"),
        (Text(("a",), "a", ((0, 2),)), "piece 0: its span (0, 2) does not lie within the 1 characters"),
        (Text(("a",), "a", ((0, 1),), special=(1,)), "place 1 is called special, and there are 1 pieces"),
        (Text((), "", ()), "an axis has 1 to 16,777,216 places, this one 0"),
        (forced(Text.of(["a"]), pieces=(3,)), "piece 0: needs a text, got 3"),
        (forced(Text.of(["a"]), text=3), "text: needs a text, got 3"),
        (Text.of(["a"], lang=""), "lang: needs a text of at least one letter"),
        (Index(0), "this one 0"),
        (Index(-1), "this one -1"),
        (Index(10**12), "this one 1,000,000,000,000"),
        (Audio(3, 0.0), "seconds_per_step must be above 0, got 0.0"),
        (Audio(3, 0.1, spectrogram=np.ones(3)), "a spectrogram is (bins, frames), got (3,)"),
        (Audio(3, 0.1, spectrogram=np.full((1, 1), np.nan)), "bin 0, frame 0: a spectrogram's value must be a finite number"),
        (Audio(3, 0.1, sound=np.ones(3)), "sound and its rate"),
        (Audio(3, 0.1, sound=np.ones(3, np.int16), rate=8000), "sound is floats from -1 to 1, got int16; divide int16 by 32768"),
        (Audio(3, 0.1, sound=np.ones((3, 2)), rate=8000), "sound is one channel, (samples,), got (3, 2)"),
        (Audio(3, 0.1, sound=np.ones(3), rate=0), "the rate of a sound must be above 0, got 0"),
        (Audio(3, 0.1, sound=np.array([0, np.nan]), rate=8), "sample 1: a sample must be a finite number"),
        (Image((0, 2), (4, 4)), "a picture's grid and size are 1 or more"),
        (Image((1, 3), (4, 4), pixels=np.zeros((4, 4, 3))), "pixels must be uint8, 0 to 255, got float64"),
        (Image((1, 3), (4, 4), pixels=np.zeros((4, 5, 3), np.uint8)), "pixels (height, width, 3) must be (4, 4, 3)"),
        (forced(Image((1, 3), (4, 4)), prefix=(3,)), "prefix 0: needs a text"),
        (Series(np.ones((3, 1)), np.ones((3, 1)), ("load",)), "times are one number for each moment"),
        (Series(np.ones(3), np.ones((2, 1)), ("load",)), "values (moments, names) must be (3, 1) to fit the axes, got (2, 1)"),
        (Series(np.array([0, np.nan, 2]), np.ones((3, 1)), ("load",)), "moment 1: a time must be a finite number"),
        (Series(np.ones(3), np.full((3, 1), np.inf), ("load",)), "a moment without a measurement is NaN"),
        (forced(Series(np.ones(3), np.ones((3, 1)), ("load",)), names=(3,)), "name 0: needs a text"),
        (Series(np.ones(3), np.ones((3, 1)), ("load",), split=4), "forecasts begin at moment 4, and there are 3"),
        ("source", "needs Text, Audio, Image, Series or Index, got str"),
    ],
)  # fmt: skip
def test_what_an_axis_must_be(axis, said):
    example = forced(Example(AXES, (LOOK,)), axes={**AXES, "other": axis})
    refuses(Trace("t", (example,)), "example 0, axis 'other'", said)


def test_a_series_may_have_gaps():
    check(trace(axes={**AXES, "days": Series(np.arange(2.0), np.array([[np.nan], [1.0]]), ("load",))}))
