import gzip
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.lines import Bounds
from regard.data.table import DataError, Record, files, read


def written(folder, text: str, name: str = "a.tsv") -> str:
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(folder / name)


def pairs(*arguments, **options) -> list[tuple[str, str | None]]:
    return [(record.source, record.target) for record in read(*arguments, **options)]


@pytest.mark.parametrize("name", ["对.tsv", "🐭.tsv.gz", "a.txt", "a"])
def test_tsv_columns_go_by_number(tmp_path, name):
    path = written(tmp_path, "Tom\t汤姆\tx\na  b \t“c”\ty\n", name)
    assert list(read(path)) == [Record("Tom", "汤姆", f"{path}:1"), Record("a  b ", "“c”", f"{path}:2")]
    assert pairs(path, "3", "1") == [("x", "Tom"), ("y", "a  b ")]


def test_tsv_columns_go_by_name_where_there_is_a_header(tmp_path):
    path = written(tmp_path, "id\ten\tzh\n7\tTom\t汤姆\n")
    assert list(read(path, "en", "zh")) == [Record("Tom", "汤姆", f"{path}:2")]
    assert pairs(path, "en", "1") == [("Tom", "7")]


def test_a_path_may_be_a_path_object(tmp_path):
    written(tmp_path, "a\tb\n")
    assert pairs(tmp_path / "a.tsv") == [("a", "b")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.ndjson", "a.json"])
def test_json_lines_go_by_name_or_number(tmp_path, name):
    path = written(tmp_path, '{"en": "Tom", "zh": "汤姆"}\n{"zh": "\\u732b", "en": "a\\tcat"}\n', name)
    assert list(read(path, "en", "zh")) == [Record("Tom", "汤姆", f"{path}:1"), Record("a\tcat", "猫", f"{path}:2")]
    assert pairs(path)[0] == ("Tom", "汤姆")


def test_json_lists_go_by_number(tmp_path):
    assert pairs(written(tmp_path, '["Tom", "汤姆"]\n', "a.jsonl"), "2", "1") == [("汤姆", "Tom")]


def test_a_key_that_looks_like_a_number_wins_over_the_place(tmp_path):
    assert pairs(written(tmp_path, '{"2": "a", "1": "b"}\n', "a.jsonl")) == [("b", "a")]


@pytest.mark.parametrize("names", [("训练.de", "训练.en"), ("a.de.gz", "b.en.gz"), ("a.de", "b.en.gz")])
def test_two_parallel_files_go_line_by_line(tmp_path, names):
    first = written(tmp_path, "ein\tMann\nzwei\n", names[0])
    second = written(tmp_path, "a man\ntwo\n", names[1])
    assert list(read(f"{first}::{second}")) == [
        Record("ein\tMann", "a man", f"{first}:1"),
        Record("zwei", "two", f"{first}:2"),
    ]


def test_standard_input_is_tsv_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a\tb\n"))))
    assert list(read("-")) == [Record("a", "b", "stdin:1")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b'["a", "b"]\n'))))
    assert pairs("-", form="jsonl") == [("a", "b")]


def test_a_target_that_is_not_needed_may_be_missing(tmp_path):
    assert pairs(written(tmp_path, "a\nb\tc\nd\t\n"), need_target=False) == [("a", None), ("b", "c"), ("d", None)]
    assert pairs(written(tmp_path, "en\na\n"), "en", "zh", need_target=False) == [("a", None)]
    path = written(tmp_path, '{"en": "a"}\n{"en": "b", "zh": null}\n{"en": "c", "zh": "d"}\n', "a.jsonl")
    assert pairs(path, "en", "zh", need_target=False) == [("a", None), ("b", None), ("c", "d")]


def test_reading_is_lazy(tmp_path):
    records = read(written(tmp_path, "a\tb\nbroken\n"))
    assert next(records).source == "a"
    with pytest.raises(DataError, match=r"a\.tsv:2"):
        next(records)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.tsv is empty"),
        ("a\tb\n\nc\td\n", r"a\.tsv:2 is empty; fill it in, or leave it out"),
        ("a\tb\n  \t \n", r"a\.tsv:2 is empty"),
        ("a\tb\n \tc\n", r"a\.tsv:2 has an empty source"),
        ("a\t\n", r"a\.tsv:1 has an empty target"),
        ("a\tb\nc\n", r"a\.tsv:2 has 1 column, and the target is column 2; put a tab between columns, or .*SOURCE::TARGET"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        pairs(written(tmp_path, text))


def test_a_missing_column_names_the_nearest(tmp_path):
    path = written(tmp_path, "source\ttarget\na\tb\n")
    with pytest.raises(DataError, match=r"a\.tsv:1 has no column 'targt'; did you mean 'target'\?"):
        pairs(path, "source", "targt")
    with pytest.raises(DataError, match=r"has no column 'zh'; there are: source, target"):
        pairs(path, "source", "zh")
    with pytest.raises(DataError, match=r"a\.tsv:2 has 2 columns, and the source is column 5"):
        pairs(path, "5", "target")


def test_a_column_that_no_line_has_is_chosen_by_its_setting(tmp_path):
    with pytest.raises(
        DataError, match=r"a\.tsv:1 has 2 columns, and the source is column 5; data\.source chooses the column$"
    ):
        pairs(written(tmp_path, "a\tb\n"), "5", "2")


def test_commas_in_a_csv_are_no_columns(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\nc,d\n")
    told = r"a\.csv has no tab in its first line, and columns stand between tabs: convert it to TSV, or to JSONL"
    with pytest.raises(DataError, match=told):
        pairs(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("a\tb\nc\td\n")
    assert pairs(tmp_path / "a.csv") == pairs(written(tmp_path, "a\tb\nc\td\n"))


def test_columns_are_counted_from_one(tmp_path):
    with pytest.raises(DataError, match="counted from 1"):
        pairs(written(tmp_path, "a\tb\n"), "0", "1")


def test_a_header_alone_is_no_data(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:1 is a header, and no record follows it"):
        pairs(written(tmp_path, "source\ttarget\n"), "source", "target")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a", "target": ', r"a\.jsonl:2 is not JSON: Expecting value at character 27"),
        ("", r"a\.jsonl:2 is empty"),
        ('"text"', r"a\.jsonl:2 needs a JSON object or list, and is text"),
        ('{"source": "a", "target": 3}', r"a\.jsonl:2 needs text in column 'target', and has a number"),
        ('{"source": "a", "target": ["b"]}', r"needs text in column 'target', and has a list"),
        ('{"source": "a", "target": {"b": 1}}', r"needs text in column 'target', and has an object"),
        ('{"source": "a", "target": null}', r"needs text in column 'target', and has null"),
        ('{"source": true, "target": "b"}', r"needs text in column 'source', and has true or false"),
        ('{"source": "a", "target": " "}', r"a\.jsonl:2 has an empty target"),
        ('{"source": "a", "tarket": "b"}', r"has no column 'target'; did you mean 'tarket'\?"),
        ('["a", "b"]', r"has no column 'target'; there are: none with a name"),
        ('{"source": "a", "target": "\\ud83d"}', r"a\.jsonl:2 has half a surrogate pair in column 'target'"),
        ("[" * 100_000, r"a\.jsonl:2 is not JSON"),
        ('{"source": ' + "9" * 5000 + "}", r"a\.jsonl:2 is not JSON"),
    ],
)
def test_bad_json_lines_are_refused_with_their_place(tmp_path, line, message):
    path = written(tmp_path, '{"source": "a", "target": "b"}\n' + line + "\n", "a.jsonl")
    with pytest.raises(DataError, match=message):
        pairs(path, "source", "target")


def test_parallel_files_need_equally_many_lines(tmp_path):
    three, two = written(tmp_path, "a\nb\nc\n", "three.de"), written(tmp_path, "a\nb\n", "two.en")
    with pytest.raises(DataError, match=r"two\.en:2 is its last line, and .*three\.de goes on; the two need equally many"):
        pairs(f"{three}::{two}")
    with pytest.raises(DataError, match=r"two\.en:2 is its last line, and .*three\.de goes on"):
        pairs(f"{two}::{three}")


def test_an_empty_line_in_a_parallel_file_is_named_in_that_file(tmp_path):
    full, holed = written(tmp_path, "a\nb\n", "full.de"), written(tmp_path, "a\n\n", "holed.en")
    with pytest.raises(DataError, match=r"holed\.en:2 is empty; a record needs a target"):
        pairs(f"{full}::{holed}")
    with pytest.raises(DataError, match=r"holed\.en:2 has an empty source"):
        pairs(f"{holed}::{full}")


@pytest.mark.parametrize("path", ["a::b::c", "::b", "a::"])
def test_two_paths_need_to_be_two(path):
    with pytest.raises(DataError, match="needs two paths, as SOURCE::TARGET"):
        pairs(path)


def test_a_file_is_not_parallel_to_itself():
    with pytest.raises(DataError, match="needs two different files"):
        pairs("-::-")


def test_the_limit_on_lines_reaches_the_reader(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:1 has more than 5 characters"):
        pairs(written(tmp_path, "abc\tdef\n"), limit=5)


CELL = st.text(st.characters(exclude_characters="\t\n\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text.strip() and not text.endswith("\r") and not text.startswith("\ufeff")
)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    assert pairs(written(folder, "".join(f"{source}\t{target}\n" for source, target in rows))) == rows
    assert pairs(written(folder, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")) == rows
    sides = [written(folder, "".join(f"{row[side]}\n" for row in rows), f"{side}.txt") for side in (0, 1)]
    assert pairs("::".join(sides)) == rows


def test_several_files_follow_each_other_and_may_be_named_twice(tmp_path):
    real, more = written(tmp_path, "a\tb\nc\td\n", "real.tsv"), written(tmp_path, '["e", "f"]\n', "more.jsonl")
    first, second = written(tmp_path, "g\n", "x.de"), written(tmp_path, "h\n", "x.en")
    assert [record.where for record in read(f"{real}+{more}")] == [f"{real}:1", f"{real}:2", f"{more}:1"]
    assert pairs(f"{more}+{first}::{second}+{more}") == [("e", "f"), ("g", "h"), ("e", "f")]


def test_a_name_that_has_a_plus_in_it_is_one_file(tmp_path):
    assert pairs(written(tmp_path, "a\tb\n", "c++.tsv")) == [("a", "b")]
    first, second = written(tmp_path, "a\n", "c++.de"), written(tmp_path, "b\n", "c++.en")
    assert pairs(f"{first}::{second}") == [("a", "b")]


def test_the_files_that_a_path_names(tmp_path):
    one = written(tmp_path, "a\tb\n", "a+b.tsv")
    assert files(one) == [one]
    assert files("a.de::a.en+b.tsv+b.tsv") == ["a.de", "a.en", "b.tsv", "b.tsv"]


def test_every_one_of_several_files_is_there_and_right(tmp_path):
    real, bad = written(tmp_path, "a\tb\n", "real.tsv"), written(tmp_path, "a\n", "bad.tsv")
    with pytest.raises(DataError, match=r"real\.tsv\+' needs a file on each side of every \+, as FIRST\+SECOND"):
        pairs(f"{real}+")
    with pytest.raises(DataError, match=r"there is no file .*reel\.tsv; did you mean .*real\.tsv\?"):
        pairs(f"{real}+{tmp_path / 'reel.tsv'}")
    with pytest.raises(DataError, match=r"bad\.tsv:1 has 1 column"):
        pairs(f"{real}+{bad}")


@pytest.mark.parametrize(
    ("line", "fault"), [("[" * 100_000, "nested too deep"), ("[" + "9" * 5000 + "]", "too many digits")]
)
def test_json_that_no_parser_takes_is_refused_in_words(tmp_path, line, fault):
    with pytest.raises(DataError, match=rf"a\.jsonl:1 is not JSON: it .*{fault}; each line needs to be one object or list"):
        pairs(written(tmp_path, line + "\n", "a.jsonl"))


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.jsonl.gz", "a.tsv.gz::b.tsv.gz"])
def test_bounds_hold_for_every_form_of_a_table(tmp_path, name):
    for part, text in (("a.tsv.gz", "a\tb\n"), ("b.tsv.gz", "c\td\n"), ("a.jsonl.gz", '["a", "b"]\n')):
        written(tmp_path, text * 5, part)
    path = "::".join(str(tmp_path / part) for part in name.split("::"))
    assert len(pairs(path, bounds=Bounds(100, 5))) == 5
    with pytest.raises(DataError, match="more than 4 records"):
        pairs(path, bounds=Bounds(100, 4))


def test_a_name_that_no_file_can_have_is_an_error_as_any_other():
    for path in ("x" * 300, "x" * 300 + "+b.tsv"):
        with pytest.raises(DataError, match="cannot be read: File name too long"):
            pairs(path)
