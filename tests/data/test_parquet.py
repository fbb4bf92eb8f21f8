import os
import sys

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from regard.data.lines import Bounds
from regard.data.table import DataError, Record, read


def written(folder, name="a.parquet", rows=None, **columns) -> str:
    parquet.write_table(pyarrow.table(columns), folder / name, row_group_size=rows)
    return str(folder / name)


def pairs(*arguments, **options) -> list[tuple[str, str | None]]:
    return [(record.source, record.target) for record in read(*arguments, **options)]


def test_columns_go_by_name_or_number(tmp_path):
    path = written(tmp_path, id=[7, 8], en=["Tom", "a\tcat"], zh=["汤姆", "猫\n"])
    assert list(read(path, "en", "zh")) == [Record("Tom", "汤姆", f"{path}:1"), Record("a\tcat", "猫\n", f"{path}:2")]
    assert pairs(path, "3", "2") == [("汤姆", "Tom"), ("猫\n", "a\tcat")]


def test_a_column_that_is_called_as_a_number_wins_over_the_place(tmp_path):
    assert pairs(written(tmp_path, **{"2": ["a"], "1": ["b"]})) == [("b", "a")]


def test_one_column_may_be_both_sides(tmp_path):
    assert pairs(written(tmp_path, text=["a", "b"]), "text", "text") == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    "kind", [pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]
)
def test_text_may_be_held_in_any_way(tmp_path, kind):
    path = written(tmp_path, a=pyarrow.array(["x", "y", "x"]).cast(kind), b=["1", "2", "3"])
    assert pairs(path) == [("x", "1"), ("y", "2"), ("x", "3")]


def test_rows_are_numbered_through_all_row_groups(tmp_path):
    path = written(tmp_path, rows=2, a=list("abcde"), b=["v", "w", "x", "y", None])
    records = read(path)
    assert [next(records).where for _ in range(4)] == [f"{path}:{number}" for number in (1, 2, 3, 4)]
    with pytest.raises(DataError, match=r"a\.parquet:5 needs text in column '2', and has null"):
        next(records)


def test_a_long_file_is_read_in_parts(tmp_path, monkeypatch):
    path = written(tmp_path, a=[str(number) for number in range(50)], b=["x"] * 50)
    monkeypatch.setattr("regard.data.parquet.ROWS", 7)
    assert [source for source, _ in pairs(path)] == [str(number) for number in range(50)]


def test_a_target_that_is_not_needed_may_be_missing(tmp_path):
    assert pairs(written(tmp_path, en=["a", "b"]), "en", "zh", need_target=False) == [("a", None), ("b", None)]
    path = written(tmp_path, en=["a", "b", "c"], zh=[None, " ", "d"])
    assert pairs(path, "en", "zh", need_target=False) == [("a", None), ("b", None), ("c", "d")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"source": pyarrow.array([], pyarrow.string()), "target": pyarrow.array([], pyarrow.string())},
            r"a\.parquet is empty",
        ),
        ({"source": ["a", None], "target": ["b", "c"]}, r"a\.parquet:2 needs text in column 'source', and has null"),
        ({"source": ["a"], "target": [3]}, r"a\.parquet:1 needs text in column 'target', and the whole column is int64"),
        ({"source": ["a"], "target": [["b"]]}, r"in column 'target', and the whole column is list<"),
        ({"source": ["a"], "target": [b"b"]}, r"in column 'target', and the whole column is binary"),
        ({"source": ["a"], "target": [" "]}, r"a\.parquet:1 has an empty target"),
        ({"source": ["a"], "tarket": ["b"]}, r"a\.parquet has no column 'target'; did you mean 'tarket'\?"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path, columns, message):
    with pytest.raises(DataError, match=message):
        pairs(written(tmp_path, **columns), "source", "target")


def test_columns_outside_the_table_are_refused(tmp_path):
    path = written(tmp_path, a=["x"], b=["y"])
    with pytest.raises(DataError, match="has no column '5'; there are: a, b"):
        pairs(path, "5", "1")
    with pytest.raises(DataError, match="counted from 1"):
        pairs(path, "0", "1")


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["x", "x"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="has 2 columns called 'x'; give each a name of its own"):
        pairs(tmp_path / "a.parquet", "x", "2")


def test_the_limit_on_characters_reaches_the_reader(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet:2 has more than 5 characters, the most of a text"):
        pairs(written(tmp_path, a=["x", "y"], b=["abcde", "abcdef"]), limit=5)


def test_text_that_is_not_utf_8_is_refused_with_its_place(tmp_path):
    broken = pyarrow.Array.from_buffers(pyarrow.string(), 1, pyarrow.array([b"\xff\xfe"]).buffers())
    with pytest.raises(DataError, match=r"a\.parquet:1 is not UTF-8 in column '2': invalid start byte; write the file anew"):
        pairs(written(tmp_path, a=["x"], b=broken))


def test_a_file_that_is_missing_or_no_parquet_says_so(tmp_path):
    path = written(tmp_path, "pairs.parquet", a=["x"], b=["y"])
    with pytest.raises(DataError, match=r"there is no file .*pair\.parquet; did you mean .*pairs\.parquet\?"):
        pairs(tmp_path / "pair.parquet")
    (tmp_path / "text.parquet").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"text\.parquet is no whole Parquet file: "):
        pairs(tmp_path / "text.parquet")
    whole = (tmp_path / "pairs.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.parquet is no whole Parquet file: "):
        pairs(tmp_path / "cut.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(DataError, match=r"folder\.parquet"):
        pairs(tmp_path / "folder.parquet")
    assert pairs(path) == [("x", "y")]


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        DataError, match=r"a\.parquet needs pyarrow, which is not installed: pip install 'regard\[parquet\]'"
    ):
        pairs(tmp_path / "a.parquet")


CELL = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory, rows):
    sources, targets = zip(*rows, strict=True)
    assert pairs(written(tmp_path_factory.mktemp("rows"), a=sources, b=targets)) == rows


def test_a_dictionary_that_repeats_a_text_without_bytes_is_bounded_as_other_compressed_files_are(tmp_path):
    texts = pyarrow.array(["x" * 900_000]).dictionary_encode()
    rows = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 9000, pyarrow.int32()), texts.dictionary)
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"a": rows, "b": ["y"] * 9000}), path, compression="zstd")
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(
        DataError, match=r"bomb.parquet is compressed and unpacks to more than 33,554,432 bytes.*data.max_bytes"
    ):
        pairs(path)
    assert path.stat().st_size < 100_000
    assert pyarrow.default_memory_pool().max_memory() - before < 100e6


def test_rows_and_bytes_that_a_parquet_file_claims_are_bounded_before_any_is_read(tmp_path):
    path = written(tmp_path, a=["x"] * 9, b=["y"] * 9)
    assert len(pairs(path, bounds=Bounds(1000, 9))) == 9
    with pytest.raises(DataError, match=r"unpacks to more than 8 records.*data.max_records"):
        next(read(path, bounds=Bounds(1000, 8)))
    with pytest.raises(DataError, match=r"unpacks to more than 20 bytes.*data.max_bytes"):
        next(read(path, bounds=Bounds(20, 9)))


def test_a_pipe_is_no_parquet_file(tmp_path):
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a.parquet cannot be read: it is a pipe, and a regular file is needed"):
        pairs(tmp_path / "a.parquet")
