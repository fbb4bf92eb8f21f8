import pytest

from regard.data.records import Record, no_column, numbered, record
from regard.errors import DataError


def test_a_record_has_two_sides_or_a_source_alone():
    assert record("a", "b", "x:1") == Record("a", "b", "x:1")
    assert record("a", None, "x:1") == Record("a", None, "x:1")


@pytest.mark.parametrize(("sides", "side"), [((" ", "b"), "source"), (("a", ""), "target")])
def test_an_empty_side_is_refused_with_its_place(sides, side):
    with pytest.raises(DataError, match=f"x:1 has an empty {side}; fill it in, or leave the line out"):
        record(*sides, "x:1")


def test_a_column_is_a_number_from_one_or_a_name():
    assert [numbered(each) for each in ("1", "12", "en", "1.5", "²", "1234567890")] == [0, 11, None, None, None, None]
    with pytest.raises(DataError, match="columns are counted from 1, and column 0 was asked for"):
        numbered("0")


def test_a_missing_column_is_told_with_the_nearest_or_all():
    assert str(no_column("targt", ["source", "target"], "x:1")) == "x:1 has no column 'targt'; did you mean 'target'?"
    assert str(no_column("zh", ["source", "target"], "x")) == "x has no column 'zh'; there are: source, target"
    assert str(no_column("zh", [], "x")) == "x has no column 'zh'; there are: none with a name"


def test_names_of_columns_are_shown_short_and_on_one_line():
    assert str(no_column("x", ["a\nb", "y" * 500], "t:1")) == f"t:1 has no column 'x'; there are: a b, {'y' * 80}..."
