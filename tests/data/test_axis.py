"""Labels: what each place of an axis is shown as."""

import numpy as np

from regard.data.axis import Audio, Image, Index, Series, Text


def test_tokens_are_shown_as_the_text_they_cover_and_by_name_where_they_cover_none():
    axis = Text(("▁Tom", "⟨E6 B1⟩", "⟨A4⟩", "<eos>", "x"), "Tom 汤", ((0, 3), (4, 5), (4, 5), None, (5, 5)))
    assert axis.labels == ["Tom", "汤", "汤", "<eos>", "x"]
    assert len(axis) == 5


def test_plain_tokens_stand_one_blank_apart():
    axis = Text.of(["汤姆", "", "Jerry"], special=[1], lang="zh")
    assert axis.text == "汤姆  Jerry"
    assert axis.spans == ((0, 2), (3, 3), (4, 9))
    assert (axis.labels, axis.special, axis.lang) == (["汤姆", "", "Jerry"], (1,), "zh")


def test_frames_are_seconds():
    assert Audio(3, 0.04).labels == ["0.00 s", "0.04 s", "0.08 s"]
    assert len(Audio(3, 0.04)) == 3


def test_patches_are_rows_and_columns_from_1_after_what_stands_before_them():
    axis = Image((2, 2), (8, 8), prefix=("CLS",))
    assert axis.labels == ["CLS", "1,1", "1,2", "2,1", "2,2"]
    assert len(axis) == 5


def test_moments_are_dates_or_numbers():
    times = np.array([0.0, 86400.5])
    assert Series(times, times[:, None], ("x",)).labels == ["1970-01-01 00:00:00", "1970-01-02 00:00:00"]
    assert Series(times, times[:, None], ("x",), dates=False).labels == ["0", "86400.5"]


def test_places_of_an_index_are_numbers_from_0():
    assert Index(3).labels == ["0", "1", "2"]
