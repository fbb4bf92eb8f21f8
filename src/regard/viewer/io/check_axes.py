"""Validation of an axis: the lengths of its parts."""

from typing import Any

import numpy as np

from regard.data.axis import Audio, Image, Index, Series, Text
from regard.viewer.io.errors import TraceError, finite, shaped, text

LONGEST = 1 << 24
"""No axis has more places; a file that claims more is broken."""


def check_axis(axis: Any, where: str) -> None:
    """Raise TraceError where an axis contradicts itself."""
    if isinstance(axis, Text):
        _text(axis, where)
    elif isinstance(axis, Audio):
        _audio(axis, where)
    elif isinstance(axis, Image):
        _image(axis, where)
    elif isinstance(axis, Series):
        _series(axis, where)
    elif not isinstance(axis, Index):
        raise TraceError(f"{where}: needs Text, Audio, Image, Series or Index, got {type(axis).__name__}")
    # not len(axis): Python itself refuses lengths below 0
    length = axis.length if isinstance(axis, Audio | Index) else len(axis)
    if not 1 <= length <= LONGEST:
        raise TraceError(f"{where}: an axis has 1 to {LONGEST:,} places, this one {length:,}")


def _text(axis: Text, where: str) -> None:
    text(axis.text, f"{where}, text")
    if len(axis.spans) != len(axis.pieces):
        raise TraceError(f"{where}: {len(axis.pieces)} pieces need as many spans, got {len(axis.spans)}")
    for place, (piece, span) in enumerate(zip(axis.pieces, axis.spans, strict=True)):
        text(piece, f"{where}, piece {place}")
        if span is not None and not 0 <= span[0] <= span[1] <= len(axis.text):
            raise TraceError(
                f"{where}, piece {place}: its span {span} does not lie within the {len(axis.text)} characters of the text"
            )
    for place in axis.special:
        if not 0 <= place < len(axis.pieces):
            raise TraceError(f"{where}: place {place} is called special, and there are {len(axis.pieces)} pieces")
    if axis.lang is not None:
        text(axis.lang, f"{where}, lang", empty=False)


def _audio(axis: Audio, where: str) -> None:
    if not (np.isfinite(axis.seconds_per_step) and axis.seconds_per_step > 0):
        raise TraceError(f"{where}: seconds_per_step must be above 0, got {axis.seconds_per_step}")
    if axis.spectrogram is not None:
        if axis.spectrogram.ndim != 2 or 0 in axis.spectrogram.shape:
            raise TraceError(f"{where}: a spectrogram is (bins, frames), got {axis.spectrogram.shape}")
        finite(axis.spectrogram, ("bin", "frame"), "a spectrogram's value", where)
    if (axis.sound is None) != (axis.rate is None):
        raise TraceError(f"{where}: sound and its rate in samples a second come together, one of them is missing")
    if axis.sound is not None and axis.rate is not None:
        if axis.sound.dtype.kind != "f":
            raise TraceError(f"{where}: sound is floats from -1 to 1, got {axis.sound.dtype}; divide int16 by 32768")
        if axis.sound.ndim != 1:
            raise TraceError(f"{where}: sound is one channel, (samples,), got {axis.sound.shape}")
        if axis.rate <= 0:
            raise TraceError(f"{where}: the rate of a sound must be above 0, got {axis.rate}")
        finite(axis.sound, ("sample",), "a sample", where)


def _image(axis: Image, where: str) -> None:
    if min(*axis.grid, *axis.size) < 1:
        raise TraceError(f"{where}: a picture's grid and size are 1 or more, got {axis.grid} and {axis.size}")
    for place, label in enumerate(axis.prefix):
        text(label, f"{where}, prefix {place}")
    if axis.pixels is not None:
        if axis.pixels.dtype != np.uint8:
            raise TraceError(f"{where}: pixels must be uint8, 0 to 255, got {axis.pixels.dtype}")
        shaped(axis.pixels, (*axis.size, 3), "pixels (height, width, 3)", where)


def _series(axis: Series, where: str) -> None:
    """Values may be NaN: a moment at which nothing was measured."""
    if axis.times.ndim != 1:
        raise TraceError(f"{where}: times are one number for each moment, got shape {axis.times.shape}")
    finite(axis.times, ("moment",), "a time", where)
    shaped(axis.values, (len(axis.times), len(axis.names)), "values (moments, names)", where)
    if np.isinf(axis.values).any():
        raise TraceError(f"{where}: a series has infinite values; a moment without a measurement is NaN")
    for place, name in enumerate(axis.names):
        text(name, f"{where}, name {place}")
    if axis.split is not None and not 0 <= axis.split <= len(axis.times):
        raise TraceError(f"{where}: forecasts begin at moment {axis.split}, and there are {len(axis.times)}")
