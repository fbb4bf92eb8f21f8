import warnings

import pytest

from regard.config import Data
from regard.data.header import TableSettings, is_header, table_settings
from regard.data.table import DataError, read
from regard.errors import DataWarning
from regard.tasks.vqa.config import VqaData

USUAL = table_settings(Data())


def written(folder, text: str) -> str:
    (folder / "a.tsv").write_text(text, encoding="utf-8")
    return str(folder / "a.tsv")


def records(path, *columns, **options):
    """The records of a table, and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pairs = [(record.source, record.target) for record in read(path, *columns, **options)]
    assert all(issubclass(each.category, DataWarning) for each in caught)
    return pairs, [str(each.message) for each in caught]


@pytest.mark.parametrize(
    "cells", [("source", "target"), ("en", "zh"), ("ID", "text"), ("Source_Text", "target-text"), ("image", "caption1")]
)
def test_usual_names_of_columns_are_a_header(cells):
    assert is_header(cells)


@pytest.mark.parametrize("cells", [("source",), ("Tom", "汤姆"), ("en", "en"), ("id", "a cat"), ("", "target")])
def test_other_lines_are_none(cells):
    assert not is_header(cells)


def test_more_columns_than_are_read_are_warned_of_and_which_they_are(tmp_path):
    path = written(tmp_path, "Tom\t汤姆\tx\na\tb\ty\n")
    pairs, texts = records(path, settings=USUAL)
    assert pairs == [("Tom", "汤姆"), ("a", "b")]
    assert texts == [
        f"{path} has 3 columns, and columns 1 (data.source) and 2 (data.target) are read; data.source and data.target "
        "choose columns, by number or by the name in a header"
    ]
    assert records(path)[1] == []


def test_columns_that_are_named_are_meant(tmp_path):
    assert records(written(tmp_path, "id\ten\tzh\n7\tTom\t汤姆\n"), "en", "zh", settings=USUAL) == ([("Tom", "汤姆")], [])


def test_what_a_task_reads_in_another_way_counts_as_read(tmp_path):
    settings = table_settings(VqaData())
    assert records(written(tmp_path, "a.png\twhat?\tcat\n"), settings=settings)[1] == []
    [text] = records(written(tmp_path, "a.png\twhat?\tcat\tx\n"), settings=settings)[1]
    assert "has 4 columns, and 3 of them are read; data.image and data.question and data.answer choose" in text


def test_a_first_line_that_looks_like_a_header_is_data_with_a_warning(tmp_path):
    path = written(tmp_path, "source\ttarget\nTom\t汤姆\n")
    pairs, texts = records(path, settings=USUAL)
    assert pairs == [("source", "target"), ("Tom", "汤姆")]
    assert texts == [
        f"{path}:1 looks like a header (source, target), and is read as data; data.header=true leaves it out, "
        "data.header=false says that it is data"
    ]


@pytest.mark.parametrize(("header", "count"), [(True, 1), (False, 2)])
def test_the_setting_decides_whether_there_is_a_header(tmp_path, header, count):
    settings = table_settings(Data(header=header))
    pairs, texts = records(written(tmp_path, "source\ttarget\nTom\t汤姆\n"), settings=settings)
    assert (len(pairs), texts) == (count, [])


def test_a_header_that_is_denied_and_used_is_an_error(tmp_path):
    path = written(tmp_path, "en\tzh\nTom\t汤姆\n")
    with pytest.raises(
        DataError, match=r"data.header=false says that .*a.tsv has no header, and column 'en' is a name; give its number"
    ):
        list(read(path, "en", "2", settings=TableSettings(header=False)))
    with pytest.raises(DataError, match=r"a.tsv:1 is a header, and no record follows it"):
        list(read(written(tmp_path, "en\tzh\n"), settings=TableSettings(header=True)))


def test_a_column_of_ids_is_warned_of(tmp_path):
    path = written(tmp_path, "".join(f"{number}\ta {number}\n" for number in range(3, 20)))
    assert records(path, settings=USUAL)[1] == [
        f"column 1 of {path} looks like ids, increasing numbers, and is read as text; data.source and data.target choose "
        "columns, by number or by the name in a header"
    ]
    assert records(path, "2", "2", settings=USUAL)[1] == []


def test_columns_that_are_chosen_by_number_are_meant(tmp_path):
    assert records(written(tmp_path, "7\tTom\t汤姆\n"), "2", "3", settings=USUAL)[1] == []


@pytest.mark.parametrize("numbers", [range(9), [*range(9), 3, *range(20, 30)], ["a", *range(30)]])
def test_few_numbers_and_those_that_do_not_increase_are_text(tmp_path, numbers):
    assert records(written(tmp_path, "".join(f"{each}\ta\n" for each in numbers)), settings=USUAL)[1] == []


def test_ids_are_found_below_a_header_too(tmp_path):
    path = written(tmp_path, "id\ttext\n" + "".join(f"{number}\ta\n" for number in range(30)))
    assert ["header" in text for text in records(path, settings=USUAL)[1]] == [True, True]
