import pytest

from regard.data.records import Record, no_column, numbered, record
from regard.data.table import read
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


def test_all_bad_lines_of_a_table_are_named_together(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tb\nc\n\xff\td\ne\t\0f\n\tg\nh\ti\n")
    rows = read(path)
    assert next(rows).source == "a"
    with pytest.raises(DataError) as caught:
        next(rows)
    first, *others = str(caught.value).split("\n  ")
    assert first == f"{path} has 4 bad lines:"
    assert [other.removeprefix(f"{path}:")[:12] for other in others] == [
        "2 has 1 colu", "3 is not UTF", "4 has a NUL ", "5 has an emp"
    ]  # fmt: skip
    assert others[2].endswith("has a NUL byte in its target, which is no text; convert the file to UTF-8, or remove it")


def test_of_many_bad_lines_the_first_ten_are_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('["a", "b"]\n' + "x\n" * 1200, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(read(tmp_path / "a.jsonl"))
    first, *others = str(caught.value).split("\n  ")
    assert first.endswith("a.jsonl has 1,200 bad lines, the first 10 of them:")
    assert len(others) == 10


def test_one_bad_line_of_two_files_is_named_alone(tmp_path):
    (tmp_path / "a.de").write_text("a\n\nb\n", encoding="utf-8")
    (tmp_path / "a.en").write_text("c\nd\ne\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"^[^\n]*a.de:2 has an empty source; fill it in, or leave the line out$"):
        list(read(f"{tmp_path / 'a.de'}::{tmp_path / 'a.en'}"))
    (tmp_path / "a.en").write_text("c\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"has 2 bad lines:\n.*a.en:2 is empty.*\n.*a.en:2 is its last line"):
        list(read(f"{tmp_path / 'a.de'}::{tmp_path / 'a.en'}"))
