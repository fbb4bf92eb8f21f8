import numpy as np
import pytest

from regard.data.series.settings import SeriesData
from regard.errors import ConfigError, DataError, DataWarning
from regard.tasks.forecast.data import candidate_look_backs, check_targets, read, split_series

DATA = SeriesData(time="day", target="sales", split="0.6,0.2,0.2", horizon=4)


def table(path, values):
    rows = [f"{np.datetime64('2024-01-01') + day},{value}" for day, value in enumerate(values)]
    path.write_text("\n".join(["day,sales", *rows]) + "\n")
    return str(path)


def test_rows_train_then_validate_then_test(tmp_path):
    [part] = split_series(read(DATA, table(tmp_path / "a.csv", range(50))), DATA).parts
    assert part.rows == (30, 40, 50)
    assert part.training.target[:, 0].tolist() == list(range(30))
    assert part.extent == (float(part.record.times[39]), None)


def test_with_a_table_to_validate_on_all_rows_before_the_test_rows_train(tmp_path):
    records = read(DATA, table(tmp_path / "a.csv", range(50)))
    parts = split_series(records, DATA, valid=records)
    assert parts.parts[0].rows == (40, 40, 50)
    assert parts.valid == records


def test_a_series_that_is_too_short_for_its_horizon_is_refused(tmp_path):
    records = read(DATA, table(tmp_path / "a.csv", range(6)))
    with pytest.raises(DataError, match=r"has 6 rows, of which 3 train .* and data\.horizon=4 needs 5 of them or more"):
        split_series(records, DATA)
    with pytest.raises(DataError, match=r"has 3 validation rows .* and data\.horizon=4 needs as many as its steps"):
        split_series(read(DATA, table(tmp_path / "b.csv", range(15))), DATA)


def test_a_target_without_anything_to_learn_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"column 'sales' is constant in the 30 rows .*: 7 in every one"):
        check_targets(read(DATA, table(tmp_path / "a.csv", [7] * 30)))


def test_one_series_of_several_without_anything_to_learn_is_a_warning(tmp_path):
    records = [*read(DATA, table(tmp_path / "a.csv", range(30))), *read(DATA, table(tmp_path / "b.csv", [7] * 30))]
    with pytest.warns(DataWarning, match="column 'sales' is constant in the training rows of"):
        check_targets(records)


@pytest.mark.parametrize(
    ("settings", "candidates"),
    [({"look_back": 9}, [9]), ({"look_backs": "8,4,8"}, [4, 8]), ({"season": 7}, [7])],
    ids=str,
)
def test_look_backs_to_choose_from(settings, candidates, tmp_path):
    data = SeriesData(time="day", target="sales", split="0.6,0.2,0.2", horizon=4, **settings)
    parts = split_series(read(data, table(tmp_path / "a.csv", range(50))), data).parts
    assert candidate_look_backs(parts, data) == candidates


@pytest.mark.parametrize("text", ["8,x", "0,4"])
def test_look_backs_are_whole_numbers(text, tmp_path):
    data = SeriesData(time="day", target="sales", horizon=4, look_backs=text)
    parts = split_series(read(data, table(tmp_path / "a.csv", range(50))), data).parts
    with pytest.raises(ConfigError, match=r"data\.look_backs is whole numbers of 1 or more with commas between them"):
        candidate_look_backs(parts, data)
