import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from regard import cli, tasks
from regard.errors import ConfigError, DataError
from regard.inference.load import load
from regard.tasks.forecast.predictor import ForecastPredictor

from .tables import write_table


def run_command(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_a_forecast_is_of_the_steps_after_the_end_in_original_units(predictor, future):
    assert isinstance(predictor, ForecastPredictor)
    forecasts = predictor.forecast(future)
    first, second = forecasts.series
    assert [str(time.astype("datetime64[s]"))[:10] for time in first.times[[0, -1]]] == ["2024-03-31", "2024-04-04"]
    assert first.point.shape == (5, 2)
    assert first.quantiles.shape == (5, 2, 2)
    assert (first.quantiles[..., 0] <= first.quantiles[..., 1]).all()
    assert 2 < first.point.mean() < 20 < second.point.mean() < 40


def test_a_prediction_is_a_table_with_the_columns_of_the_input(predictor, future):
    prediction = predictor.predict(future)
    lines = prediction.text.splitlines()
    assert lines[0] == "shop,date,sales,sales_0.1,sales_0.9,visits,visits_0.1,visits_0.9"
    assert lines[1].startswith("a,2024-03-31,")
    assert len(lines) == 1 + 2 * 5
    assert [series["series"] for series in prediction.fields["series"]] == ["a", "b"]
    assert prediction.fields["series"][0]["targets"]["sales"]["quantiles"].keys() == {"0.1", "0.9"}


def test_the_order_and_the_number_of_series_change_no_forecast(predictor, future, tmp_path):
    lines = future.read_text().splitlines()
    alone = tmp_path / "alone.csv"
    alone.write_text("\n".join([lines[0], *(line for line in lines if ",b," in line)]) + "\n")
    both, one = predictor.forecast(future), predictor.forecast(alone)
    np.testing.assert_allclose(one.series[0].point, both.series[1].point, rtol=1e-5)


def test_covariates_known_ahead_are_needed_for_the_horizon(predictor, sales):
    with pytest.raises(DataError, match=r"has promotion for 0 steps after its last target, and the horizon is 5; add rows"):
        predictor.forecast(sales)


def test_a_table_of_another_step_or_without_a_value_is_refused(predictor, tmp_path, future):
    lines = future.read_text().splitlines()
    weekly = tmp_path / "weekly.csv"
    weekly.write_text("\n".join([lines[0], *(line for line in lines[1:96:7] if ",a," in line)]) + "\n")
    with pytest.raises(DataError, match=r"weekly\.csv:2 \(series 'a'\) begins a series with a step of W, and the model was"):
        predictor.forecast(weekly)
    hollow = tmp_path / "hollow.csv"
    hollow.write_text(lines[0] + "\n2024-01-01,a,,,0,Ulm\n2024-01-02,a,,,1,Ulm\n")
    with pytest.raises(
        DataError, match=r"hollow\.csv:2 .* begins a series without a value in sales, visits: all are missing"
    ):
        predictor.forecast(hollow)


def test_levels_are_between_those_that_are_calibrated(predictor, future):
    predictor.set_levels("0.05, 0.5,0.85")
    forecast = predictor.forecast(future).series[0]
    assert forecast.levels == (0.05, 0.5, 0.85)
    assert (np.diff(forecast.quantiles, axis=-1) >= 0).all()
    for text in ("0.999", "", "low"):
        with pytest.raises(ConfigError, match=r"--levels needs numbers from 0\.025 to 0\.975 with commas between them"):
            predictor.set_levels(text)


def test_other_options_are_checked_before_anything_is_computed(predictor, tmp_path):
    with pytest.raises(ConfigError, match=r"--plot needs a file called NAME\.png, NAME\.pdf, NAME\.svg, got 'next\.gif'"):
        predictor.set_plot("next.gif")
    with pytest.raises(ConfigError, match="--backtest needs a number of rolling origins, 1 or more, got '0'"):
        predictor.set_backtest("0")
    predictor.set_explain(str(tmp_path / "why.json"))
    with pytest.raises(ConfigError, match="--plot and --explain are for one table, got 2"):
        predictor.predict(["a.csv", "b.csv"])
    with pytest.raises(ConfigError, match="a forecast has one answer, with quantiles"):
        predictor.predict("a.csv", best=2)


def test_a_forecast_that_is_not_finite_is_no_answer(predictor, future):
    with torch.no_grad():
        predictor.model.network.head.bias.fill_(float("nan"))
    [(_, error)] = predictor.outcomes([str(future)])
    assert "scores that are finite" in str(error)
    assert list(predictor.find_unscored(predictor.read_table(future))) == [0, 1]


def test_an_evaluation_begins_after_the_rows_that_a_training_has_read(predictor, sales):
    windows = predictor.select_windows(predictor.read_table(sales))
    assert sorted({window.origin for window in windows}) == list(range(75, 86))
    figures = predictor.evaluate(sales)
    assert figures["repeat-last.mse"].value > figures["seasonal-naive.mse"].value
    assert figures["coverage80"].low <= figures["coverage80"].value <= figures["coverage80"].high


def test_the_batch_size_changes_no_figure_of_an_evaluation(predictor, sales):
    tables = []
    for size in (1, 5, 64):
        predictor.config = replace(predictor.config, search=replace(predictor.config.search, batch_size=size))
        tables.append({name: figure.value for name, figure in predictor.evaluate(sales).items()})
    assert tables[1] == pytest.approx(tables[0], rel=1e-5)
    assert tables[2] == pytest.approx(tables[0], rel=1e-5)


def test_rolling_origins_are_a_horizon_apart_and_those_in_training_rows_are_reported(predictor, sales, tmp_path):
    predictor.set_backtest("3")
    records = predictor.read_table(sales)
    assert [window.origin for window in predictor.select_windows(records)] == [75, 80, 85, 75, 80, 85]
    predictor.set_backtest("5")
    with pytest.warns(UserWarning, match="4 of 10 windows begin in rows that the model was trained on or validated with"):
        predictor.select_windows(records)
    predictor.set_backtest("40")
    with pytest.raises(DataError, match="40 rolling windows with a horizon of 5 need 201 rows, and the series has 90"):
        predictor.select_windows(records)


def test_a_table_that_ends_with_the_training_rows_has_nothing_to_evaluate(predictor, tmp_path):
    short = write_table(tmp_path / "short.csv", rows=75)
    with pytest.raises(DataError, match="and no 5 of them are after what the model was trained on and validated with"):
        predictor.evaluate(short)


def test_rows_that_a_split_leaves_unused_are_not_tested_on(tmp_path, sales):
    from .tables import build

    experiment, _ = build(sales, "data.split=60,10,10")
    predictor = ForecastPredictor(tasks.bind("forecast"), experiment.config, experiment.codec, experiment.model)
    windows = predictor.select_windows(predictor.read_table(sales))
    assert sorted({window.origin for window in windows}) == list(range(70, 76))


def test_other_columns_of_a_table_may_be_named(predictor, sales, tmp_path):
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(sales.read_text().replace("date,shop,sales", "day,shop,sold", 1))
    with pytest.raises(DataError, match="has no column 'sales'"):
        predictor.read_table(renamed)
    assert predictor.read_table(renamed, time="day", target="sold,visits")[0].names.target == ("sold", "visits")
    with pytest.raises(ConfigError, match="source is no column of forecast; it has time and target"):
        predictor.read_table(renamed, source="day")


def test_a_trace_has_an_axis_of_time(predictor, future):
    trace = predictor.trace(str(future))
    assert len(trace.examples) == 2
    attention = trace.attention()
    axis = trace.examples[0].axes[attention.key]
    assert axis.kind == "series"
    assert axis.names == ("sales", "visits")
    assert attention.weights.shape[-1] == len(axis)


class Frame:
    """What reading asks of a pandas DataFrame."""

    class Index:
        name, dtype = None, np.dtype(int)

    class Column(list):
        def to_numpy(self):
            return np.array(self)

    index = Index()

    def __init__(self, path):
        header, *rows = [line.split(",") for line in path.read_text().splitlines()]
        self.columns, self.cells, self.rows = header, dict(zip(header, zip(*rows, strict=True), strict=True)), len(rows)

    def __getitem__(self, name):
        return self.Column(self.cells[name])

    def __len__(self):
        return self.rows


def test_a_frame_is_forecast_and_evaluated_as_its_file_is(predictor, future, sales):
    np.testing.assert_array_equal(
        predictor.forecast(Frame(future)).series[1].point, predictor.forecast(future).series[1].point
    )
    assert predictor.predict(Frame(future)).text == predictor.predict(future).text
    assert predictor.evaluate(Frame(sales)) == predictor.evaluate(sales)


@pytest.mark.unhooked  # whole commands, whose shapes the tests of their parts check
def test_the_commands_train_forecast_explain_and_evaluate(run, sales, future, tmp_path):
    plot, why = tmp_path / "next.png", tmp_path / "why.json"
    predicted = run_command("predict", run, future, "--plot", plot, "--explain", why, "--json", "--levels", "0.1,0.5,0.9")
    assert predicted.exit_code == 0, predicted.stderr
    [answer] = json.loads(predicted.stdout)["answers"]
    assert list(answer["series"][1]["targets"]["visits"]["quantiles"]) == ["0.1", "0.5", "0.9"]
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert [each["series"] for each in json.loads(why.read_text())] == ["a", "b"]
    out = tmp_path / "out.csv"
    assert run_command("predict", run, future, "--out", out).exit_code == 0
    assert out.read_text().startswith("shop,date,sales,")
    evaluated = run_command("evaluate", run, f"--data.test={sales}", "--backtest", "2")
    assert evaluated.exit_code == 0, evaluated.stderr
    names = [line.split("  ")[0] for line in evaluated.stdout.splitlines()[1:5]]
    assert names == ["model", "linear", "seasonal-naive", "repeat-last"]
    metrics = json.loads(run_command("evaluate", run, f"--data.test={sales}", "--json").stdout)
    assert metrics["mase"]["value"] > 0
    refused = run_command("predict", run, sales)
    assert refused.exit_code == 2
    assert "add rows with these columns and an empty target" in refused.stderr


def test_a_run_forecasts_alike_after_it_was_loaded_again(run, future):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (load(run, "cpu").predict(future).text for _ in range(2))
    assert first == second
