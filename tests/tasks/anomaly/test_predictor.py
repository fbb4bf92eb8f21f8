import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.cli._predict_io import AnswerWriter
from regard.errors import ConfigError, DataError
from regard.tasks.anomaly.predictor import fill_missing
from regard.viewer.io import load, save

from .test_experiment import wave, write

MODEL = {"detector": "memory", "memory": 200, "clusters": 3, "aggregate": "last"}
DATA = {"window": 8, "stride": 2}


def faulty(row):
    return wave(row) if row != 70 else 9.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("anomaly")


@pytest.fixture(scope="module")
def predictor(folder):
    train = write(folder / "sensor.csv", {"a": wave, "b": lambda row: wave(row + 5)}, 200)
    options = {"data": {"train": train, **DATA}, "model": MODEL, "train": {"max_steps": 2}, "quiet": True}
    return regard.train("anomaly", out=folder / "run", **options).load("cpu")


@pytest.fixture(scope="module")
def live(folder):
    columns = {"a": faulty, "b": lambda row: wave(row + 5), "anomaly": lambda row: int(row == 70)}
    return write(folder / "live.csv", columns, 100)


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_each_row_of_a_table_has_a_score_and_an_alarm(predictor, live):
    prediction = predictor.predict(live)
    rows = read(prediction.text)
    assert [row["row"] for row in rows] == [str(number) for number in range(100)]
    assert max(rows, key=lambda row: float(row["score"]))["row"] == "70"
    assert rows[70]["alarm"] == "1"
    assert sum(row["alarm"] == "1" for row in rows) < 10
    assert prediction.score == pytest.approx(float(rows[70]["score"]), rel=1e-5)


def test_json_has_the_rows_as_columns(predictor, live):
    [answer] = json.loads(AnswerWriter(predictor, as_json=True).format(live, [predictor.predict(live)]))["answers"]
    [series] = answer["series"]
    assert series["time"] == [str(number) for number in range(100)]
    assert series["alarm"] == [score >= answer["threshold"] for score in series["score"]]


def test_a_step_without_a_value_has_no_score(predictor, folder):
    path = write(
        folder / "gap.csv", {"a": lambda row: "" if row == 30 else wave(row), "b": lambda row: "" if row == 30 else 0.1}, 60
    )
    prediction = predictor.predict(path)
    assert read(prediction.text)[30] == {"row": "30", "score": "", "alarm": "0"}
    assert prediction.fields["series"][0]["score"][30] is None


def test_the_threshold_may_be_chosen(folder, live):
    predictor = regard.load(folder / "run")
    predictor.set_options({"threshold": "1e9"})
    assert not any(row["alarm"] == "1" for row in read(predictor.predict(live).text))
    with pytest.raises(ConfigError, match=r"--threshold needs a number, got 'high'"):
        predictor.set_options({"threshold": "high"})


def test_streamed_scores_are_those_of_the_whole_table(predictor, live):
    assert "".join(predictor.stream(live)) == predictor.predict(live).text + "\n"


def test_metrics_stand_beside_those_of_other_detectors(predictor, live):
    metrics = predictor.evaluate(live, label="anomaly")
    assert metrics["vus_pr"].value > metrics["random.vus_pr"].value + 20
    assert {"k_means.vus_pr", "pca.vus_pr", "random.f1_adjusted"} <= metrics.keys()
    again = predictor.evaluate_examples(
        [predictor.codec.encode(record) for record in predictor.read_table(live, label="anomaly")]
    )
    assert again == metrics


def test_metrics_need_labels_of_both_kinds(predictor, live, folder):
    with pytest.raises(DataError, match=r"live.csv:2 begins a series without labels, which metrics need"):
        predictor.evaluate(live)
    normal = write(folder / "normal.csv", {"a": wave, "b": wave, "anomaly": lambda row: 0})
    with pytest.raises(DataError, match=r"normal.csv:2 begins series of which none has both"):
        predictor.evaluate(normal, label="anomaly")
    with pytest.raises(ConfigError, match=r"name is no column of anomaly; it has time, target, label"):
        predictor.evaluate(live, name="x")


def test_a_trace_shows_the_window_of_the_highest_score(predictor, live, folder):
    trace = predictor.trace(live)
    path = save(trace, folder / "t.attn.safetensors")
    [example] = load(path).examples
    assert "step 71" in example.title
    [attention] = example.attentions
    assert (attention.name, attention.key) == ("memory", "memory")
    np.testing.assert_allclose(np.asarray(attention.weights).sum(-1), 1, rtol=1e-3)
    with pytest.raises(ValueError, match=r"trace needs one input or more, got none"):
        predictor.trace([])


@pytest.mark.parametrize("name", ["reconstruction", "forecast", "association"])
def test_the_patches_of_a_trace_have_times_and_values(folder, live, name):
    train = str(folder / "sensor.csv")
    model = {"detector": name, "hidden_size": 8, "heads": 2, "layers": 1, "clusters": 3}
    model |= {"latents": 3} if name == "reconstruction" else {}
    run = regard.train(
        "anomaly", out=folder / name, data={"train": train, **DATA}, model=model, train={"max_steps": 1}, quiet=True
    )
    trace = run.load("cpu").trace(live)
    [example] = trace.examples
    assert example.axes["patches"].values.shape == (2, 2)
    assert "encoder.0" in [attention.name for attention in example.attentions]


def test_options_of_text_are_refused(predictor, live):
    with pytest.raises(ConfigError, match=r"--beam is for models that write text"):
        predictor.check_search_options({"beam": 3}, [])
    predictor.check_search_options({"stream": True}, [])
    with pytest.raises(ConfigError, match=r"a table has one score for each step"):
        predictor.predict(live, best=2)


def test_weights_that_are_not_finite_are_told(folder, live):
    predictor = regard.load(folder / "run")
    predictor.model.network.memory.windows.fill_(float("nan"))
    records = predictor.read_table(live, label="anomaly")
    assert "scores need to be finite" in str(predictor.find_unscored(records)[0])


def test_any_table_of_these_columns_is_known(predictor, live):
    assert predictor.fits(live)
    assert predictor.is_known(live)
    [record] = predictor.read(live)
    assert predictor.read(record) == [record]
    assert Path(live).name in record.where


def test_missing_values_are_filled_for_the_period():
    assert fill_missing(np.array([1.0, np.nan, 3.0])).tolist() == [1, 2, 3]
    assert fill_missing(np.array([np.nan])).tolist() == [0]
