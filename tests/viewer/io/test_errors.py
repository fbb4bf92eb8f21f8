"""The questions that every part of a trace must answer, each asked by itself."""

import numpy as np
import pytest

from regard.viewer.io.errors import TraceError, finite, first, floats, shaped, text


def test_a_trace_error_is_a_value_error():
    assert issubclass(TraceError, ValueError)


def test_the_first_is_the_first_in_reading_order():
    wrong = np.zeros((2, 3, 4), bool)
    wrong[1, 0, 3] = wrong[1, 2, 0] = True
    assert first(wrong) == [1, 0, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_weights_are_of_two_kinds(dtype):
    floats(np.ones(1, dtype), "weights", "here")
    for other in (np.float64, np.int32, bool):
        with pytest.raises(TraceError, match=f"^here: weights must be float16 or float32, got {np.dtype(other)}$"):
            floats(np.ones(1, other), "weights", "here")


def test_a_shape_fits_or_both_are_said():
    shaped(np.ones((2, 3)), (2, 3), "values", "here")
    with pytest.raises(TraceError, match=r"^here: values must be \(3, 2\) to fit the axes, got \(2, 3\)$"):
        shaped(np.ones((2, 3)), (3, 2), "values", "here")


def test_a_number_that_is_none_is_named_by_its_place():
    numbers = np.array([[0, 1], [-np.inf, np.nan]])
    with pytest.raises(TraceError, match=r"^here, head 1, key 0: a weight must be a finite number, got -inf$"):
        finite(numbers, ("head", "key", "rank"), "a weight", "here")
    finite(numbers[0], ("key",), "a weight", "here")
    finite(np.array([2**31 - 1]), ("key",), "a weight", "here")  # whole numbers always are


def test_a_text_may_be_empty_only_where_it_is_said_to():
    text("", "here")
    text("x", "here", empty=False)
    with pytest.raises(TraceError, match=r"^here: needs a text of at least one letter, got ''$"):
        text("", "here", empty=False)
    with pytest.raises(TraceError, match=r"^here: needs a text, got b'x'$"):
        text(b"x", "here")


def test_an_error_is_short_however_long_a_name_is():
    assert str(TraceError("a" * 1000)) == "a" * 1000
    assert str(TraceError("a" * 1001)) == "a" * 1000 + "..."
