from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch

from regard.data.series.calendar import Frequency
from regard.data.series.records import Names, SeriesRecord
from regard.data.series.windows import (
    EncodedSeries,
    Rows,
    SeriesLoader,
    Span,
    Window,
    Windows,
    collate,
    evaluation_span,
    future_span,
    rolling_span,
    split_rows,
    training_span,
)
from regard.errors import DataError


def series(length, future=0, targets=1):
    """A series whose values are the numbers of their steps, from 1."""
    steps = np.arange(1, length + 1, dtype=np.float64)
    target = np.tile(steps[:, None], (1, targets))
    known = np.arange(1, length + future + 1, dtype=np.float64)[:, None]
    empty = np.zeros((length, 0))
    names = Names(tuple("abc"[:targets]), known=("k",))
    record = SeriesRecord(
        steps, target, names, Frequency(1, "numbers"), empty, known, np.arange(length + 1, length + future + 1.0)
    )
    return EncodedSeries(
        record,
        target.astype(np.float32),
        np.ones_like(target, bool),
        empty.astype(np.float32),
        known.astype(np.float32),
        np.zeros(0, np.int64),
        np.zeros(targets, np.float32),
        np.ones(targets, np.float32),
    )


@pytest.mark.parametrize(
    ("length", "split", "rows"),
    [
        (17_420, (8640, 2880, 2880), Rows(8640, 11_520, 14_400)),
        (100, (0.7, 0.1, 0.2), Rows(70, 80, 100)),
        (101, (0.7, 0.1, 0.2), Rows(70, 81, 101)),
        (100, (0.5, 0.25, 0.0), Rows(50, 75, 75)),
        (10, (8, 2, 0), Rows(8, 10, 10)),
    ],
)
def test_a_split_is_by_rows_or_by_shares(length, split, rows):
    assert split_rows(length, split) == rows


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((0.7, 0.3), "a split is three numbers"),
        ((0.7, -0.1, 0.4), "a split is three numbers"),
        ((0, 50, 50), "a split is three numbers"),
        ((0.7, 0.2, 0.2), "three shares that add up to 1, got 0.7, 0.2, 0.2"),
        ((80, 20, 20), "a split of 80, 20, 20 needs 120 rows, and the series has 100"),
    ],
)
def test_what_is_no_split_is_refused(split, message):
    with pytest.raises(DataError, match=message):
        split_rows(100, split)


def test_no_training_window_reaches_past_the_training_rows():
    span = training_span(50, look_back=10, horizon=5)
    windows = Windows([series(100)], [span])
    assert len(windows) == 50 - 10 - 5 + 1
    for window in windows:
        batch = collate([window], 10, 5)
        assert batch.source.data.max() < batch.target.data.min()
        assert batch.target.data.max() <= 50
        assert batch.source.keep.all()


def test_every_horizon_of_an_evaluation_is_inside_its_rows_and_none_is_dropped():
    rows = split_rows(17_420, (8640, 2880, 2880))
    span = evaluation_span(rows.valid, rows.test, horizon=96)
    assert span.origins == 2880 - 96 + 1
    windows = Windows([series(17_420)], [span])
    assert (windows[0].origin, windows[len(windows) - 1].origin + 96) == (11_520, 14_400)
    loader = SeriesLoader(windows, 24, 96, batch_size=64, shuffle=False)
    assert sum(part.batch.rows for part in loader.in_order()) == span.origins


def test_a_shorter_series_is_padded_on_the_left():
    batch = collate([Window(series(4), 3)], 5, 1)
    assert batch.source.keep.tolist() == [[False, False, True, True, True]]
    assert batch.source.data[0, :, 0].tolist() == [0, 0, 1, 2, 3]
    assert training_span(4, look_back=5, horizon=1) == Span(3, 3)


def test_what_is_known_ahead_reaches_over_the_horizon():
    batch = collate([Window(series(6, future=2), 6)], 3, 2)
    assert batch.target is None
    assert batch.observed is None
    assert batch.source.known[0, :, 0].tolist() == [4, 5, 6, 7, 8]


def test_a_horizon_past_the_end_is_masked():
    batch = collate([Window(series(6), 5), Window(series(6), 3)], 3, 2)
    assert batch.target.keep.tolist() == [[True, False], [True, True]]
    assert batch.target.data[..., 0].tolist() == [[6, 0], [4, 5]]


def test_the_future_changes_no_source():
    whole = series(20)
    cut = replace(whole, data=whole.data.copy())
    cut.data[12:] = np.nan
    first, second = (collate([Window(each, 12)], 6, 3).source for each in (whole, cut))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_rolling_origins_are_a_horizon_apart_and_the_last_horizon_ends_the_series():
    span = rolling_span(100, horizon=8, count=5)
    origins = [window.origin for window in Windows([series(100)], [span])]
    assert origins == [60, 68, 76, 84, 92]
    with pytest.raises(DataError, match="5 rolling windows with a horizon of 8 need 41 rows, and the series has 40"):
        rolling_span(40, 8, 5)


def test_windows_of_several_series_are_numbered_one_after_another():
    windows = Windows([series(5), series(3), series(9)], [Span(2, 4), Span(3, 2), Span(2, 8, 3)])
    assert [(len(window.series), window.origin) for window in windows] == [(5, 2), (5, 3), (5, 4), (9, 2), (9, 5), (9, 8)]
    assert windows[-1].origin == 8
    assert [window.origin for window in windows[1:4]] == [3, 4, 2]
    with pytest.raises(IndexError, match="there are 6 windows, and window 6 was asked for"):
        windows[6]


def test_a_future_has_one_origin_after_the_end():
    assert [window.origin for window in Windows([series(7)], [future_span(7)])] == [7]


def test_an_epoch_holds_every_window_once_in_an_order_of_its_own():
    windows = Windows([series(30)], [Span(5, 25)])
    loader = SeriesLoader(windows, 5, 2, batch_size=4, seed=1)
    first, second = loader.epoch(0), loader.epoch(1)
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(21))
    assert first != second
    assert [len(batch) for batch in SeriesLoader(windows, 5, 2, batch_size=4, shuffle=False).epoch(0)] == [4, 4, 4, 4, 4, 1]
    assert torch.equal(loader.batch(7).source.data, loader.batch(7).source.data)


@pytest.mark.parametrize(
    ("windows", "options", "message"),
    [
        (Windows([], []), {}, "a loader needs at least one window"),
        (Windows([series(9)], [Span(2, 4)]), {"batch_size": 0}, "batch_size of at least 1"),
        (Windows([series(9)], [Span(2, 4)]), {"seed": -1}, "a seed of at least 0"),
    ],
)
def test_a_loader_says_what_it_needs(windows, options, message):
    with pytest.raises(ValueError, match=message):
        SeriesLoader(windows, 2, 1, **options)
