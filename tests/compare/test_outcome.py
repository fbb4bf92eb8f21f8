import pytest

from regard import registry, tasks
from regard.compare.outcome import LOWER_IS_BETTER, Column

from .conftest import compared, done, lost


def test_the_columns_are_the_test_sets_then_the_validation_sets_then_the_costs():
    found = compared(lost("none"), done("additive", test=28.0)).columns()
    assert found == [
        Column("test", "bleu"),
        Column("valid", "bleu"),
        Column("valid", "loss"),
        Column("", "parameters"),
        Column("", "seconds"),
        Column("", "tokens_per_second"),
    ]
    assert compared(lost("none")).columns() == []


def test_a_column_finds_its_number_and_its_interval():
    outcome = done("additive", bleu=30.0, seconds=61.0)
    assert Column("valid", "bleu").of(outcome) == 30
    assert Column("valid", "bleu").interval(outcome) == (29, 31)
    assert Column("valid", "loss").interval(outcome) is None
    assert Column("", "seconds").of(outcome) == 61
    assert Column("", "seconds").interval(outcome) is None
    assert Column("test", "bleu").of(outcome) is None
    assert Column("valid", "bleu").of(lost("none")) is None


def test_all_of_it_is_a_table_with_the_intervals_in_it():
    found = compared(done("none", "recurrent"), settings=("model.attention", "model.decoder"), beam=5).plain()
    assert (found["task"], found["seeds"], found["beam"]) == ("translate", 1, 5)
    [run] = found["runs"]
    assert run["values"] == {"model.attention": "none", "model.decoder": "recurrent"}
    assert run["figures"]["valid"]["bleu"] == {"value": 30.0, "low": 29.0, "high": 31.0, "signature": "sig"}
    assert (run["state"], run["folder"]) == ("done", "none,recurrent-0")


@pytest.mark.parametrize("task", [name for name in registry.names("tasks") if tasks.find(name).Config.WRITES])
def test_whether_less_is_better_is_known_of_whatever_a_task_measures(task):
    found = tasks.find(task)
    right, wrong = ["a b c d e f", "g h i j k l"], ["x", "y z"]
    best = found.measure(right, right, right, found.Config())
    worst = found.measure(wrong, right, right, found.Config())
    for name, figure in best.items():
        if not isinstance(figure, list):
            assert (figure.value < worst[name].value) == (name in LOWER_IS_BETTER), f"put {name} into LESS, or take it out"
