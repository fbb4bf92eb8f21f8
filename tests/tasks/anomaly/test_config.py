from regard.tasks.anomaly.config import AnomalyData, build_columns, series_settings


def test_columns_are_those_of_the_settings():
    columns = build_columns(AnomalyData(target="a, b", past="c", label="anomaly", id="machine"))
    assert (columns.target, columns.past, columns.label, columns.id) == (("a", "b"), ("c",), "anomaly", "machine")


def test_a_window_is_a_look_back_without_a_horizon_that_counts():
    settings = series_settings(AnomalyData(window=32, scaling="none"))
    assert (settings.look_back, settings.horizon, settings.scaling) == (32, 1, "none")


def test_the_capacity_of_a_batch_is_its_windows():
    assert AnomalyData(batch_size=7).budget == 7
