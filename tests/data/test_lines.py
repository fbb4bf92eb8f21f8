import gzip
import io
import os
import re
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from regard.config import Data
from regard.data.lines import LIMIT, Bounds, bounds, lines
from regard.errors import DataError
from regard.tasks.detect.config import DetectData


def written(folder, data: bytes, name: str = "a.tsv") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def texts(path: str, **options) -> list[str]:
    return [line.text for line in lines(path, **options)]


def test_lines_come_with_their_place(tmp_path):
    path = written(tmp_path, "eins\nzwei\n三".encode())
    assert list(lines(path)) == [("eins", f"{path}:1"), ("zwei", f"{path}:2"), ("三", f"{path}:3")]


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = written(tmp_path, "a\u2028b\x0bc\x85d\r\ne\rf\n".encode())
    assert texts(path) == ["a\u2028b\x0bc\x85d", "e\rf"]


def test_a_byte_order_mark_is_no_text(tmp_path):
    assert texts(written(tmp_path, b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")) == ["a", "\ufeffb"]


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv"])
def test_gzip_is_undone_whatever_the_name(tmp_path, name):
    assert texts(written(tmp_path, gzip.compress("猫\n狗\n".encode()), name)) == ["猫", "狗"]


@pytest.mark.parametrize("name", ["数据/训练.tsv", "🐭 and 🧀.tsv"])
def test_any_path_will_do(tmp_path, name):
    (tmp_path / "数据").mkdir()
    assert texts(written(tmp_path, b"a\n", name)) == ["a"]


@pytest.mark.parametrize("data", ["猫\n狗\n".encode(), gzip.compress("猫\n狗\n".encode())], ids=["plain", "gz"])
def test_standard_input_is_a_dash(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
    assert list(lines("-")) == [("猫", "stdin:1"), ("狗", "stdin:2")]
    assert not sys.stdin.buffer.closed


def test_standard_input_without_a_buffer_to_peek_into_works(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    assert texts("-") == ["a"]


def test_no_standard_input_at_all_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="- cannot be read"):
        texts("-")


@pytest.mark.parametrize("data", [b"a\nb\n", gzip.compress(b"a\nb\n")], ids=["plain", "gz"])
def test_a_pipe_is_read_as_it_fills(tmp_path, data):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    writer = threading.Thread(target=Path(path).write_bytes, args=(data,))
    writer.start()
    assert texts(path) == ["a", "b"]
    writer.join()


def test_a_missing_file_names_the_nearest(tmp_path):
    written(tmp_path, b"a\n", "train.tsv")
    with pytest.raises(
        DataError, match=re.escape(f"there is no file {tmp_path}/trian.tsv; did you mean {tmp_path}/train.tsv?")
    ):
        texts(str(tmp_path / "trian.tsv"))
    with pytest.raises(DataError, match=r"there is no file .*; check the path"):
        texts(str(tmp_path / "nowhere" / "x.tsv"))


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(DataError, match="is a directory, and a file is needed"):
        texts(str(tmp_path))


def test_a_path_that_no_system_takes_is_an_error():
    with pytest.raises(DataError, match="cannot be read"):
        texts("a\0b")


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["plain", "gz"])
def test_an_empty_file_is_refused(tmp_path, data):
    with pytest.raises(DataError, match=r"a\.tsv is empty; it needs at least one line"):
        texts(written(tmp_path, data))


@pytest.mark.parametrize(
    ("data", "byte"), [(b"good\nba\xffd\n", "byte 3 of the line is 0xff"), (b"good\n\xe6\xb1", "byte 1")]
)
def test_broken_utf_8_is_found_to_the_byte(tmp_path, data, byte):
    with pytest.raises(DataError, match=rf"a\.tsv:2 is not UTF-8: {byte}.*convert the file to UTF-8"):
        texts(written(tmp_path, data))


@pytest.mark.parametrize(
    "damaged", [gzip.compress(b"a\n" * 9)[:-9], b"\x1f\x8bnothing", b"plain"], ids=["short", "bad", "none"]
)
def test_broken_gzip_is_refused(tmp_path, damaged):
    with pytest.raises(DataError, match=r"a\.gz:\d+ cannot be read"):
        texts(written(tmp_path, damaged, "a.gz"))


def test_a_line_may_be_as_long_as_the_limit_and_no_longer(tmp_path):
    path = written(tmp_path, "汤汤汤汤\r\nab\n".encode())
    assert texts(path, limit=4) == ["汤汤汤汤", "ab"]
    with pytest.raises(DataError, match=r"a\.tsv:1 has more than 3 characters"):
        texts(path, limit=3)


def test_a_line_without_end_is_refused_before_it_is_read_whole(tmp_path):
    path = written(tmp_path, gzip.compress(b"a\n" + b"x" * 30_000_000), "a.tsv.gz")
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"a\.tsv\.gz:2 has more than {LIMIT:,} characters"):
        texts(path)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(("line", "bound"), [(b"a\tb\n", "5,000 records"), (b"b" * 999 + b"\n", "100,000 bytes")])
def test_a_compressed_file_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, monkeypatch, line, bound):
    monkeypatch.setattr("regard.data.lines.LEAST_RECORDS", 5000)
    monkeypatch.setattr("regard.data.lines.LEAST_BYTES", 100_000)
    path = written(tmp_path, gzip.compress(line * (1_000_000 // len(line))), "bomb.tsv.gz")
    message = rf"bomb.tsv.gz is compressed and unpacks to more than [\d,]+ {bound.split()[1]}, .*raise data.max_{bound.split()[1]} .*, or give it uncompressed"
    count = iter(range(1_000_000))
    with pytest.raises(DataError, match=message):
        list(zip(count, lines(path), strict=False))
    assert next(count) <= 5002


def test_the_bounds_of_a_compressed_file_are_settings(tmp_path):
    path = written(tmp_path, gzip.compress(b"ab\n" * 4), "a.gz")
    assert len(texts(path, bounds=Bounds(12, 4))) == 4
    with pytest.raises(DataError, match=r"a.gz is compressed and unpacks to more than 11 bytes.* data.max_bytes"):
        texts(path, bounds=Bounds(11, 4))
    with pytest.raises(DataError, match=r"a.gz is compressed and unpacks to more than 3 records.* data.max_records"):
        texts(path, bounds=Bounds(12, 3))
    assert bounds(Data(max_bytes=7, max_records=8)) == Bounds(7, 8)
    assert bounds(DetectData(max_bytes=7)) == Bounds(7, None)


def test_what_is_not_compressed_has_no_bound(tmp_path):
    assert len(texts(written(tmp_path, b"ab\n" * 4), bounds=Bounds(1, 1))) == 4


def test_a_larger_compressed_file_may_unpack_to_more(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.data.lines.LEAST_BYTES", 100)
    monkeypatch.setattr("regard.data.lines.LEAST_RECORDS", 10)
    noise = [f"{number * 2654435761 % 4294967296:x}\n".encode() for number in range(2000)]
    assert len(texts(written(tmp_path, gzip.compress(b"".join(noise)), "a.gz"))) == 2000


def test_a_pipe_that_nobody_writes_to_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.inputs.WAIT", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        DataError, match=r"pipe cannot be read: it is a pipe that nobody has written to for 0 seconds; start"
    ):
        texts(str(tmp_path / "pipe"))


def test_a_device_is_no_file():
    with pytest.raises(DataError, match="/dev/zero cannot be read: it is a device, and a file or a pipe is needed"):
        texts("/dev/zero")
