import numpy as np

from regard.tasks.anomaly import synthetic
from regard.tasks.anomaly.task import synthesise


def test_series_are_a_function_of_the_seed():
    first, again, other = (synthesise(2, seed)[1][1] for seed in (0, 0, 1))
    assert np.array_equal(first.target, again.target)
    assert not np.array_equal(first.target, other.target)


def test_labelled_series_continue_the_training_series():
    training, later = synthesise(1, 0)
    assert later[0].times[0] == training[0].times[-1] + 3600
    assert training[0].label is None
    assert training[0].id == later[0].id


def test_each_kind_of_anomaly_is_planted_once():
    values = synthetic.draw_sensors(np.random.default_rng(0), 8 * synthetic.WEEK)
    planted, label = synthetic.plant(np.random.default_rng(1), values)
    changed = (planted != values).any(1)
    assert (changed <= label).all()
    starts = np.flatnonzero(np.diff(label.astype(int)) == 1)
    assert len(starts) == len(synthetic.KINDS)
    assert 0.02 < label.mean() < 0.15


def test_series_have_a_daily_season():
    load = synthetic.draw_sensors(np.random.default_rng(0), 8 * synthetic.WEEK)[:, 0]
    centred = load - load.mean()
    correlation = [float(np.mean(centred[lag:] * centred[:-lag])) for lag in (12, 24)]
    assert correlation[1] > 0 > correlation[0]
