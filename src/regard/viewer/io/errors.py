"""The refusal of a trace, and the questions that every part of it must answer: shape, kind of number, finite, text."""

from typing import Any

import numpy as np

from regard.data.axis import Array

LONGEST = 1000
"""The most characters of an error, which is cut there: names in a file may have any length."""


class TraceError(ValueError):
    """Something that cannot be in a trace, or a file that is not one. Its text names the first offender."""

    def __init__(self, text: str):
        super().__init__(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def first(wrong: Array) -> list[int]:
    """The place of the first True."""
    return [int(index) for index in np.unravel_index(int(np.argmax(wrong)), wrong.shape)]


def floats(array: Array, what: str, where: str) -> None:
    """Weights and what goes with them are numbers in float16 or float32."""
    if array.dtype not in (np.float16, np.float32):
        raise TraceError(f"{where}: {what} must be float16 or float32, got {array.dtype}")


def shaped(array: Array, shape: tuple[int, ...], what: str, where: str) -> None:
    """An array of exactly this shape."""
    if array.shape != shape:
        raise TraceError(f"{where}: {what} must be {shape} to fit the axes, got {array.shape}")


def finite(array: Array, names: tuple[str, ...], what: str, where: str) -> None:
    """No NaN and no infinity; `names` are what the array's indices count."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = first(~np.isfinite(array))
        place = ", ".join(f"{name} {index}" for name, index in zip(names[: len(at)], at, strict=True))
        raise TraceError(f"{where}, {place}: {what} must be a finite number, got {array[tuple(at)]}")


def text(value: Any, where: str, *, empty: bool = True) -> None:
    """A text, where one is needed."""
    if not isinstance(value, str) or not (value or empty):
        raise TraceError(f"{where}: needs a text{'' if empty else ' of at least one letter'}, got {value!r}")
