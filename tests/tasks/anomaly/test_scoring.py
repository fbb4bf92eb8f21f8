import itertools

import numpy as np
import pytest
import torch

from regard.data.series.calendar import Frequency
from regard.tasks.anomaly.config import AnomalyModel
from regard.tasks.anomaly.scoring import Moments, Postprocess, Rows, Scorer, collate, format_steps, tail_log_probability


def rows(values):
    data = np.asarray(values, np.float32)[:, None]
    nothing = np.zeros((len(data), 0), np.float32)
    return Rows(data, np.ones_like(data, bool), nothing, nothing)


def values_of(source):
    """A score that is the value itself, so that each step tells where it was read."""
    return source.data[..., 0]


def last_of(source):
    """The last value of a window, at all of its steps."""
    return source.data[:, -1:, 0].expand(-1, source.data.shape[1])


def score(length, *, score=values_of, parts=None, **options):
    scorer = Scorer(score, **options)
    cuts = [0, *np.cumsum(parts).tolist()] if parts else [0, length]
    pieces = [scorer.push(rows(np.arange(length)).cut(*pair)) for pair in itertools.pairwise(cuts)]
    return np.concatenate([*pieces, scorer.finish()])


@pytest.mark.parametrize("length", [1, 3, 4, 5, 11, 12, 30])
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("stride", [1, 3, 9])
def test_each_step_has_its_own_score_in_its_place(length, mean, stride):
    assert score(length, window=4, stride=stride, mean=mean).tolist() == list(range(length))


def test_a_mean_is_over_the_windows_that_cover_a_step():
    assert score(6, score=last_of, window=3, stride=1).tolist() == [2, 2.5, 3, 4, 4.5, 5]


def test_the_first_window_of_a_step_is_the_one_in_which_it_is_new():
    assert score(6, score=last_of, window=3, stride=1, mean=False).tolist() == [2, 2, 2, 3, 4, 5]
    assert score(6, score=last_of, window=3, stride=2, mean=False).tolist() == [2, 2, 2, 4, 4, 5]


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("stride", [1, 4, 7])
def test_rows_that_arrive_one_by_one_have_the_scores_of_a_whole_series(mean, stride):
    options = {"score": last_of, "window": 7, "stride": stride, "mean": mean}
    whole = score(60, **options)
    assert score(60, parts=[1] * 60, **options).tolist() == whole.tolist()
    assert score(60, parts=[5, 2, 40, 13], **options).tolist() == whole.tolist()


@pytest.mark.parametrize("mean", [True, False])
def test_the_state_does_not_grow_with_the_series(mean):
    scorer, sizes = Scorer(last_of, window=8, stride=3, mean=mean), []
    for start in range(0, 3000, 50):
        for step in range(start, start + 50):
            scorer.push(rows([float(step)]))
        sizes.append((len(scorer.rows), len(scorer.sums)))
    assert max(kept for kept, _ in sizes) == 8
    assert max(waiting for _, waiting in sizes) <= 8 + 3


def test_a_long_series_is_scored_a_batch_of_windows_at_a_time():
    seen = []

    def record(source):
        seen.append(len(source.data))
        return source.data[..., 0]

    assert score(9000, score=record, window=16, stride=1).tolist() == list(range(9000))
    assert max(seen) == 256


def test_a_short_window_is_padded_where_the_series_has_not_begun():
    source = collate([rows([1, 2]), rows([3, 4, 5])], 3)
    assert source.data[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert source.keep.tolist() == [[False, True, True], [True, True, True]]
    assert source.observed[0, :, 0].tolist() == [False, True, True]


def test_scores_are_smoothed_over_those_before():
    assert Postprocess(AnomalyModel(smooth=2)).push(np.array([2.0, 4, 6])).tolist() == [2, 3, 5]


def test_within_the_refractory_period_only_a_higher_score_counts():
    scores = np.array([3.0, 2, 5, 4, 1, 2, 3])
    assert Postprocess(AnomalyModel(refractory=2)).push(scores).tolist() == [3, 0, 5, 0, 0, 0, 3]


def test_likelihood_is_the_tail_probability_among_the_scores_before():
    history = np.random.default_rng(0).random(30)
    scores = Postprocess(AnomalyModel(likelihood=10)).push(history)
    last = history[-10:]
    assert scores[-1] == pytest.approx(tail_log_probability((history[-1] - last.mean()) / last.std()))
    calm = np.random.default_rng(0).random(100)
    scores = Postprocess(AnomalyModel(likelihood=50)).push(np.append(calm, 3.0))
    assert scores[-1] > 2 * scores[20:-1].max()


@pytest.mark.parametrize("distance", [-3.0, 0.0, 1.0, 6.0, 19.99, 20.01, 60.0])
def test_a_tail_probability_has_a_logarithm_however_small_it_is(distance):
    exact = -float(torch.special.log_ndtr(torch.tensor(-distance, dtype=torch.float64))) / np.log(10)
    assert tail_log_probability(distance) == pytest.approx(exact, rel=1e-3)


def test_moments_are_those_of_the_last_numbers():
    numbers, moments = np.random.default_rng(0).random(40), Moments(7)
    for number in numbers:
        moments.push(float(number))
    assert (moments.mean, moments.deviation) == pytest.approx((numbers[-7:].mean(), numbers[-7:].std()))
    assert Moments.deviation.fget(constant(0.1)) > 0


def constant(number):
    moments = Moments(5)
    for _ in range(9):
        moments.push(number)
    return moments


def test_postprocessing_does_not_depend_on_how_scores_arrive():
    scores = np.random.default_rng(0).random(80)
    settings = AnomalyModel(smooth=3, likelihood=20, refractory=4)
    whole, parts = Postprocess(settings).push(scores), Postprocess(settings)
    assert (
        np.concatenate([parts.push(scores[:1]), parts.push(scores[1:30]), parts.push(scores[30:])]).tolist()
        == whole.tolist()
    )


def test_times_have_the_same_text_alone_and_together():
    hours = np.arange(3) * 3600 * 12
    assert format_steps(hours, Frequency(3600 * 12)) == ["1970-01-01 00:00:00", "1970-01-01 12:00:00", "1970-01-02 00:00:00"]
    assert format_steps(hours[::2], Frequency(86_400)) == ["1970-01-01", "1970-01-02"]
    assert format_steps(np.array([0.0, 1.0]), Frequency(1.0, "numbers")) == ["0", "1"]
