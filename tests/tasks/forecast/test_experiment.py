import numpy as np
import pytest
import torch

from regard.api import build_experiment, read_config
from regard.data.series.codec import SeriesCodec
from regard.errors import ConfigError, DataError
from regard.losses.types import Progress

from .tables import build, read_settings, write_table


def test_rows_after_the_training_rows_change_nothing_that_is_trained(tmp_path, sales):
    """Scales, look-back windows, the linear baseline and the loss of a step see training rows alone."""
    changed = write_table(tmp_path / "changed.csv", change=60)
    (first, _), (second, _) = build(sales), build(changed)
    assert first.codec.scales == second.codec.scales
    torch.testing.assert_close(first.model.linear.weight, second.model.linear.weight, rtol=0, atol=0)
    assert len(first.train.examples) == len(second.train.examples) == 2 * (60 - 14 - 5 + 1)
    for step in range(3):
        losses = [
            each.loss(each.model.eval(), each.train.batch(step), Progress(step, 3)).total.item() for each in (first, second)
        ]
        assert losses[0] == losses[1]


def test_test_rows_change_no_figure_of_a_training(tmp_path, sales):
    changed = write_table(tmp_path / "changed.csv", change=75)
    figures = [each.evaluate(each.model.eval()) for each, _ in (build(sales), build(changed))]
    assert figures[0] == figures[1]


def test_the_batch_size_changes_no_figure(sales):
    figures = []
    for size in (1, 7, 64):
        experiment, _ = build(sales, f"search.batch_size={size}")
        figures.append(experiment.evaluate(experiment.model.eval()))
    assert figures[1] == pytest.approx(figures[0], rel=1e-5)
    assert figures[2] == pytest.approx(figures[0], rel=1e-5)


def test_every_window_of_the_validation_rows_is_evaluated(sales):
    experiment, report = build(sales)
    assert report.valid == len(experiment.valid) == 2 * (15 - 5 + 1)
    assert str(report) == "2 series, 84 windows to train on and 22 to validate with, look-back 14"


def test_a_look_back_is_chosen_on_the_validation_rows_and_printed(sales):
    experiment, report = build(sales, "data.look_back=0", "data.look_backs=7,14,40")
    errors = dict(report.candidates)
    assert list(errors) == [7, 14, 40]
    assert experiment.codec.look_back == report.look_back == min(errors, key=errors.get)
    assert f"look-back {report.look_back}, the best of the linear forecasts on the validation rows (MSE 7: " in str(report)
    assert report.notes()["candidates"] == report.candidates


def test_a_table_of_its_own_validates(tmp_path, sales):
    other = write_table(tmp_path / "other.csv", rows=30)
    experiment, report = build(sales, f"data.valid={other}")
    assert report.windows == 2 * (75 - 14 - 5 + 1)
    assert report.valid == 2 * (30 - 14 - 5 + 1)
    assert {window.origin for window in experiment.valid} == set(range(14, 26))
    config = read_config("forecast", overrides=[f"data.valid={other}"])
    with pytest.raises(DataError, match=r"data\.valid is given and data\.train is not"):
        build_experiment("forecast", config)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["data.horizon=0"], r"data\.horizon is the number of steps to forecast, 1 or more, got 0"),
        (["data.horizon=70"], r"has 90 rows, of which 60 train \(data\.split=60,15,15\), and data\.horizon=70 needs 71"),
        (["data.horizon=20"], r"has 15 validation rows .* and data\.horizon=20 needs as many as its steps"),
        (["train.monitor=bleu"], r"train\.monitor needs to be one of loss, mse, .* got 'bleu'"),
        (["data.look_back=0", "data.look_backs=a"], r"data\.look_backs is whole numbers of 1 or more .* got 'a'"),
    ],
)
def test_a_setting_that_no_series_can_satisfy_is_an_error(sales, settings, text):
    with pytest.raises((ConfigError, DataError), match=text):
        build(sales, *settings)


def test_covariates_that_a_network_does_not_read_are_refused(sales):
    columns = ["data.target=sales", "data.past=visits"]
    with pytest.raises(ConfigError, match=r"data\.past=visits would change nothing: model\.network=patch reads the past"):
        build(sales, *columns)
    experiment, _ = build(sales, *columns, "model.network=recurrent")
    assert experiment.codec.past_names == ("visits", "visits missing")


def test_covariates_known_ahead_reach_a_network_of_patches_by_a_head_of_their_own(sales):
    experiment, _ = build(sales)
    model = experiment.model.eval()
    batch = experiment.train.batch(0)
    known = batch.source.known.clone()
    known[:, -5:, 0] += 1
    changed = batch.source._replace(known=known)
    torch.testing.assert_close(model(changed).parameters, model(batch.source).parameters)  # before it has learned anything
    torch.nn.init.normal_(model.head.outer.weight)
    assert not torch.allclose(model(changed).parameters, model(batch.source).parameters)


def test_a_column_without_values_or_with_one_value_cannot_be_forecast(tmp_path):
    rows = [f"2024-01-{day:02d},1,,5" for day in range(1, 31)]
    path = tmp_path / "flat.csv"
    path.write_text("date,a,b,c\n" + "\n".join(rows) + "\n")
    settings = ["data.id=", "data.static=", "data.known=", "data.split=0.6,0.2,0.2", "data.horizon=3", "data.look_back=4"]
    with pytest.raises(DataError, match=r"column 'b' has no value in the 18 rows from .*flat\.csv:2 that train"):
        build(path, *settings, "data.target=b")
    with pytest.raises(
        DataError, match=r"column 'c' is constant in the 18 rows from .*flat\.csv:2 that train: 5 in every one"
    ):
        build(path, *settings, "data.target=c")


def test_a_series_without_a_value_beside_others_is_a_warning(tmp_path, sales):
    text = sales.read_text()
    lines = [
        ",".join([*line.split(",")[:3], "", *line.split(",")[4:]]) if ",b," in line else line for line in text.splitlines()
    ]
    path = tmp_path / "hollow.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.warns(
        UserWarning, match=r"column 'visits' has no value in the training rows of .*hollow\.csv:92 \(series 'b'\)"
    ):
        build(path)


def test_synthetic_series_are_the_data_where_no_table_is_named():
    experiment, report = build_experiment("forecast", read_config("forecast", overrides=["data.samples=2"]))
    assert report.series == 2
    assert experiment.codec.names.known == ("promotion", "price")
    text = experiment.extra_files["samples/sales.csv"].decode()
    assert text.startswith("date,shop,sales,promotion,price,region\n2020-01-01,shop 1,")
    last = text.splitlines()[-1].split(",")
    assert last[2] == ""
    assert last[3] in "01"


def test_a_codec_remembers_which_rows_a_training_has_read(tmp_path, sales):
    experiment, _ = build(sales)
    extent = experiment.codec.extents["a"]
    assert np.datetime64(int(extent.read_until), "s") == np.datetime64("2024-03-15")
    assert extent.test_until is None
    experiment.codec.save(tmp_path)
    assert SeriesCodec.load(tmp_path).extents == experiment.codec.extents


def test_a_config_that_no_model_can_be_built_from_is_refused(sales):
    from regard.tasks._validate import buildable, heeded
    from regard.tasks.forecast.task import Config

    with pytest.raises(ConfigError, match=r"model\.patch_length=20 needs a look-back of at least as many steps"):
        buildable(read_settings(sales, "model.patch_length=20"))
    with pytest.raises(ConfigError, match=r"model\.cell=gru would change nothing: it needs model\.network=recurrent, and"):
        heeded([read_settings(sales, "model.cell=gru")], Config())
    heeded([read_settings(sales, "model.cell=gru", "model.network=recurrent", "model.patch_length=16", "model.patch_stride=8",
                          "model.feedforward_size=128", "model.heads=4", "train.scheduled_sampling=linear")], Config())  # fmt: skip
