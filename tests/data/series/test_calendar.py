import numpy as np
import pytest

from regard.data.series.calendar import (
    Frequency,
    calendar_features,
    feature_names,
    format_times,
    infer_frequency,
    irregular_step,
    parse_times,
)
from regard.errors import DataError


def times(*texts, **options):
    return parse_times(texts, [f"a.csv:{row}" for row in range(2, len(texts) + 2)], "date", **options)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86_400),
        ("1970/1/2", 86_400),
        ("1970-01-01 01:02", 3720),
        ("1970-01-01T01:02:03", 3723),
        ("1970-01-01T01:02:03.5", 3723),
        ("1970-01-01T01:00:00Z", 3600),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00-0230", 12_600),
        ("1970-02", 31 * 86_400),
    ],
)
def test_a_date_is_seconds_since_1970(text, seconds):
    assert times(text).tolist() == [seconds]


def test_times_may_be_plain_numbers():
    assert times("0", "0.5", "1").tolist() == [0, 0.5, 1]


def test_a_format_says_which_number_is_the_day():
    assert format_times(times("3/2/2024", "4/2/2024", time_format="%d/%m/%Y")) == ["2024-02-03", "2024-02-04"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("2024-01-01", "soon"), r"a\.csv:3 needs a time such as .* in column 'date', got 'soon'"),
        (("2024-13-01",), r"a\.csv:2 needs .* got '2024-13-01': month must be in 1\.\.12"),
        (("1", "x"), r"a\.csv:3 needs .* got 'x'; data\.time_format"),
        (("1", "inf"), r"a\.csv:3 needs .* got 'inf'"),
    ],
)
def test_what_is_no_time_is_named_with_row_and_column(texts, message):
    with pytest.raises(DataError, match=message):
        times(*texts)


@pytest.mark.parametrize(
    ("texts", "frequency"),
    [
        (("2024-01-01 00:00", "2024-01-01 00:15", "2024-01-01 00:30"), "15min"),
        (("2024-01-01 00:00", "2024-01-01 01:00"), "h"),
        (("2024-01-01", "2024-01-02", "2024-01-03"), "D"),
        (("2024-01-01", "2024-01-08", "2024-01-15"), "W"),
        (("2024-01-15", "2024-02-15", "2024-03-15"), "M"),
        (("2024-01-31", "2024-02-29", "2024-03-31"), "M"),
        (("2023-10-01", "2024-01-01", "2024-04-01"), "Q"),
        (("2022-01-01", "2023-01-01", "2024-01-01"), "Y"),
        (("1", "3", "5"), "2"),
    ],
)
def test_the_frequency_of_times_is_inferred(texts, frequency):
    assert infer_frequency(times(*texts)) == (infer_frequency(times(*texts)).frequency, None)
    assert str(infer_frequency(times(*texts)).frequency) == frequency


def test_the_first_irregular_step_is_found():
    days = times("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-05")
    assert infer_frequency(days) == (Frequency(86_400), 3)
    assert irregular_step(days, Frequency(86_400)) == 3
    assert irregular_step(days[:3], Frequency(86_400)) is None


@pytest.mark.parametrize("text", ["15min", "h", "D", "2W", "M", "Q", "Y", "30s"])
def test_a_frequency_is_spelt_as_it_is_parsed(text):
    assert str(Frequency.parse(text)) == text


@pytest.mark.parametrize("text", ["", "0h", "daily", "1.5h", "-1D"])
def test_what_is_no_frequency_is_refused(text):
    with pytest.raises(DataError, match="a frequency is a number and a unit"):
        Frequency.parse(text)


def test_months_after_the_last_day_of_a_month():
    (january,) = times("2024-01-31").tolist()
    assert format_times(Frequency(1, "months").steps_after(january, 3)) == ["2024-02-29", "2024-03-31", "2024-04-30"]
    (february,) = times("2024-02-29").tolist()
    assert format_times(Frequency(1, "months", month_end=True).steps_after(february, 2)) == ["2024-03-31", "2024-04-30"]
    assert format_times(Frequency(1, "months").steps_after(february, 2)) == ["2024-03-29", "2024-04-29"]


def test_steps_between_include_both_ends():
    first, last = times("2024-01-01", "2024-03-01").tolist()
    assert len(Frequency.parse("D").steps_between(first, last)) == 61
    assert len(Frequency.parse("M").steps_between(first, last)) == 3


@pytest.mark.parametrize(
    ("text", "seasons"),
    [("h", (24, 168)), ("15min", (96,)), ("D", (7, 365)), ("W", (52,)), ("M", (12,)), ("Q", (4,)), ("Y", ())],
)
def test_seasons_are_whole_days_weeks_and_years(text, seasons):
    assert Frequency.parse(text).seasons == seasons


def test_calendar_features_are_those_that_change_at_a_frequency():
    monday = times("2024-01-01 00:00", "2024-01-07 12:00")
    hourly = dict(zip(feature_names(Frequency.parse("h")), calendar_features(monday, Frequency.parse("h")).T, strict=True))
    np.testing.assert_allclose(hourly["hour of day"], [-0.5, 0])
    np.testing.assert_allclose(hourly["day of week"], [-0.5, 0.5])
    assert feature_names(Frequency.parse("D"))[0] == "day of week"
    assert feature_names(Frequency.parse("M")) == ("month of year",)
    assert calendar_features(times("1", "2"), Frequency(1, "numbers")).shape == (2, 0)
