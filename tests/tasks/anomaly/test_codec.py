import numpy as np

from regard.tasks.anomaly.codec import AnomalyCodec
from regard.tasks.anomaly.config import AnomalyData
from regard.tasks.anomaly.task import synthesise

from .test_experiment import wave, write

TRAINING, LATER = synthesise(2, 0)


def test_a_codec_is_saved_with_its_columns(tmp_path):
    codec = AnomalyCodec.fit(TRAINING, AnomalyData())
    assert [path.name for path in codec.save(tmp_path)] == ["codec.json"]
    again = AnomalyCodec.load(tmp_path)
    assert (again.columns.id, again.columns.time, again.series.columns.label) == ("machine", "time", "anomaly")
    assert again.columns.label == ""
    assert again.targets == ("load", "temperature")


def test_series_are_scaled_by_their_training_rows():
    codec = AnomalyCodec.fit(TRAINING, AnomalyData())
    [example] = codec.encode_all(TRAINING[:1]).examples
    assert np.abs(example.data.mean(0)).max() < 1e-4
    assert codec.length(example) == len(codec.pieces(example)) == len(codec.axis(example)) == len(TRAINING[0])
    assert codec.grid(example) is None
    assert codec.budget([example], 5) == 5


def test_a_table_is_read_without_its_label(tmp_path):
    path = write(tmp_path / "live.csv", {"a": wave, "anomaly": lambda row: 1}, 50)
    codec = AnomalyCodec.fit(TRAINING, AnomalyData())
    plain = AnomalyCodec.fit(TRAINING, AnomalyData(train=path, label="anomaly"))
    assert plain.columns.label == ""
    records = AnomalyCodec.fit([record.between(0, 100) for record in LATER], AnomalyData()).select_fitting(LATER)
    assert records == [0, 1]
    assert codec.is_known(TRAINING[0])
    assert codec.fits(TRAINING[0])


def test_limits_of_a_table_are_those_of_the_settings():
    codec = AnomalyCodec.fit(TRAINING, AnomalyData()).adapt(AnomalyData(max_bytes=5))
    assert codec.limits.bytes == 5


def test_a_prediction_is_written_as_it_is(tmp_path):
    with (tmp_path / "out.csv").open("w") as file:
        AnomalyCodec.fit(TRAINING, AnomalyData()).write("a,b\n", file)
    assert (tmp_path / "out.csv").read_text() == "a,b\n"
