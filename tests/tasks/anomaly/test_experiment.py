import numpy as np
import pytest
import torch

from regard import tasks
from regard.config import Train
from regard.errors import ConfigError, DataError
from regard.losses.types import Progress
from regard.tasks.anomaly.codec import AnomalyCodec
from regard.tasks.anomaly.config import AnomalyData, AnomalyModel
from regard.tasks.anomaly.experiment import Evaluation, Split, find_offsets, find_places
from regard.tasks.anomaly.task import Config, synthesise

SMALL = AnomalyModel(hidden_size=8, feedforward_size=8, layers=1, heads=2, clusters=3, memory=20)


def write(path, columns, rows=120):
    names = list(columns)
    lines = [",".join(names)]
    lines += [",".join(str(columns[name](row)) for name in names) for row in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def wave(row):
    return round(float(np.sin(row / 3)), 3)


def build(path, *, model=SMALL, train=Train(max_steps=2), **data):
    config = Config(data=AnomalyData(train=path, window=16, stride=4, batch_size=8, **data), model=model, train=train)
    return tasks.experiment("anomaly", config)[0]


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "sensor.csv", {"a": wave, "b": lambda row: row % 7})


def test_training_windows_are_inside_the_training_rows(table):
    experiment = build(table)
    origins = sorted(
        window.origin
        for step in range(experiment.train.steps_per_epoch())
        for window in experiment.train.batch(step).records
    )
    assert origins == list(range(16, 97))


def test_scales_are_those_of_the_training_rows(tmp_path):
    jump = write(tmp_path / "sensor.csv", {"a": lambda row: wave(row) + 100 * (row >= 96)})
    [mean] = build(jump).codec.series.scales[""].mean
    assert abs(mean) < 0.1


def test_thresholds_need_held_out_rows_alone(table):
    """Labels of any table change nothing; scores of held-out rows do."""
    experiment = build(table)
    experiment.evaluate(experiment.model.eval())
    thresholds = experiment.model.thresholds.clone()
    assert torch.isfinite(thresholds).all()
    experiment.evaluate.split.series[0].data[110:] += 10
    experiment.evaluate.baselines.clear()
    experiment.evaluate(experiment.model)
    assert (experiment.model.thresholds[:3] > thresholds[:3]).all()


def test_labels_do_not_reach_training_or_threshold(tmp_path):
    models = []
    for anomalous in (0, 1):
        path = write(
            tmp_path / f"{anomalous}.csv", {"a": wave, "anomaly": lambda row, anomalous=anomalous: anomalous * (row % 2)}
        )
        experiment = build(path, label="anomaly")
        experiment.evaluate(experiment.model.eval())
        models.append(experiment.model.state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_the_loss_counts_observed_values_alone(tmp_path):
    gaps = write(tmp_path / "gaps.csv", {"a": lambda row: "NA" if row % 5 == 2 else wave(row)})
    experiment = build(gaps)
    batch = experiment.train.batch(0)
    loss = experiment.loss(experiment.model, batch, Progress(0, 2))
    assert int(loss.tokens) == int(batch.source.observed.sum()) < batch.source.data.numel()


def test_a_memory_does_not_expect_a_window_from_itself(table):
    experiment = build(table, model=AnomalyModel(name="memory", memory=100, clusters=3))
    memory = experiment.model.network.memory
    with torch.no_grad():
        memory.log_width.fill_(-9)
    batch = experiment.train.batch(0)
    places = torch.tensor(find_places(batch.records, experiment.loss.offsets))
    _, weights = memory(batch.source, places, weights=True)
    nearest = memory.places[weights[:, 0, 0].argmax(-1)]
    assert ((nearest - places).abs() >= 16).all()


def test_series_have_places_apart():
    training, _ = synthesise(2, 0)
    codec = AnomalyCodec.fit(training, AnomalyData())
    offsets = find_offsets([codec.encode(record) for record in training])
    assert offsets == {"machine 1": 0, "machine 2": 2 * len(training[0])}


def test_labelled_series_compare_the_detectors(tmp_path):
    labelled = write(
        tmp_path / "valid.csv", {"a": wave, "b": lambda row: row % 7, "anomaly": lambda row: int(50 < row < 60)}
    )
    plain = write(tmp_path / "train.csv", {"a": wave, "b": lambda row: row % 7, "anomaly": lambda row: 0})
    experiment = build(plain, valid=labelled, label="anomaly")
    figures = experiment.evaluate(experiment.model.eval())
    assert {"loss", "vus_pr", "k_means.vus_pr", "pca.f1", "random.f1_adjusted"} <= figures.keys()
    assert isinstance(experiment.evaluate, Evaluation)
    assert isinstance(experiment.evaluate.split, Split)


@pytest.mark.parametrize(
    ("columns", "rows", "data", "error", "message"),
    [
        ({"a": lambda row: 3}, 120, {}, DataError, r"sensor.csv:2 begins 96 training rows with one value, 3, in column 'a'"),
        (
            {"a": lambda row: "NA"},
            120,
            {},
            DataError,
            r"sensor.csv:2 begins 96 training rows without any value in column 'a'",
        ),
        ({"a": wave}, 1, {}, DataError, r"sensor.csv:2 is the only time"),
        ({"a": wave}, 20, {}, DataError, r"sensor.csv:2 begins a series of 20 rows, and training needs two windows of 16"),
        (
            {"a": lambda row: "x" if row == 7 else row},
            120,
            {},
            DataError,
            r"sensor.csv:9 needs a number in column 'a', got 'x'",
        ),
        ({"a": lambda row: "inf" if row == 7 else row}, 120, {}, DataError, r"sensor.csv:9 has an infinity in column 'a'"),
        (
            {"day": lambda row: f"2024-01-{30 - row:02}", "a": wave},
            29,
            {},
            DataError,
            r"sensor.csv:3 is at 2024-01-29 in column 'day', before the row above it",
        ),
        ({"a": wave}, 120, {"held_out": 1.5}, ConfigError, r"data.held_out needs to be a share between 0 and 1, got 1.5"),
        (
            {"a": wave},
            120,
            {"valid": "v.csv"},
            ConfigError,
            r"data.valid compares detectors by labels, and needs data.label",
        ),
    ],
)
def test_bad_input_is_named_by_row_and_column(tmp_path, columns, rows, data, error, message):
    with pytest.raises(error, match=message):
        build(write(tmp_path / "sensor.csv", columns, rows), **data)


def test_a_constant_column_is_scored_where_that_is_asked_for(tmp_path):
    experiment = build(write(tmp_path / "sensor.csv", {"a": lambda row: 3}), constant="score")
    figures = experiment.evaluate(experiment.model.eval())
    assert np.isfinite(figures["loss"])


def test_a_table_to_validate_on_needs_one_to_train_on(tmp_path):
    with pytest.raises(DataError, match=r"data.valid is given and data.train is not"):
        tasks.experiment("anomaly", Config(data=AnomalyData(valid="v.csv")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": AnomalyData(window=0)}, r"data.window of 1 or more and data.stride of 1 or more, got 0 and 8"),
        ({"model": AnomalyModel(alarm_rate=2.0)}, r"model.alarm_rate needs to be a share between 0 and 1, got 2.0"),
    ],
)
def test_settings_without_a_model_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        tasks.bind("anomaly").family.build_small(Config(**change))


def test_the_monitor_is_a_figure_of_the_task(table):
    with pytest.raises(ConfigError, match=r"train.monitor needs to be one of loss, got 'vus_pr'"):
        build(table, train=Train(monitor="vus_pr"))
