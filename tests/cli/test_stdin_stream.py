import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.cli._stdin_stream import read_partial_lines
from regard.data.lines import lines
from regard.errors import DataError


class Chunks:
    """A stream that gives what it is given, chunk by chunk."""

    def __init__(self, *chunks):
        self.chunks = list(chunks)

    def read1(self, size=-1):
        return self.chunks.pop(0) if self.chunks else b""


def heard(*chunks, **options):
    return [list(line) for line in read_partial_lines(Chunks(*chunks), **options)]


def test_a_piece_is_there_before_its_line_has_ended():
    stream = Chunks(b"Tom cha", b"ses Jerry\n", b"end")
    line = next(read_partial_lines(stream))
    assert next(line) == "Tom cha"
    assert stream.chunks == [b"ses Jerry\n", b"end"]
    assert list(line) == ["ses Jerry"]


def test_what_nobody_takes_of_a_line_is_let_go():
    found = read_partial_lines(Chunks(b"one ", b"line\nother\n"))
    assert next(next(found)) == "one "
    assert list(next(found)) == ["other"]


def test_empty_lines_are_lines():
    assert heard(b"\n\na\n\n") == [[], [], ["a"], []]


def test_a_character_in_two_chunks_is_one():
    assert heard(b"\xe4\xbd", b"\xa0\n") == [["你"]]


@given(
    st.lists(st.sampled_from(["a", "\r", "\n", "\r\n", "你", "\ufeff", " ", "\x85", "\u2028"]), min_size=1, max_size=12),
    st.lists(st.integers(1, 4), max_size=20),
)
def test_lines_are_what_they_would_be_in_a_file(tmp_path_factory, parts, sizes):
    raw = "".join(parts).encode()
    assume(parts != ["\ufeff"])  # nothing to answer, and so an error here
    chunks, rest = [], raw
    for size in sizes:
        chunks, rest = ([*chunks, rest[:size]] if rest[:size] else chunks), rest[size:]
    path = tmp_path_factory.getbasetemp() / "spoken.txt"
    path.write_bytes(raw)
    assert ["".join(line) for line in heard(*chunks, *([rest] if rest else []))] == [line.text for line in lines(str(path))]


def test_a_stream_like_standard_input_is_read():
    assert [list(line) for line in read_partial_lines(io.BufferedReader(io.BytesIO(b"a b\n")))] == [["a b"]]


def test_what_cannot_be_read_is_told_after_what_can():
    found = read_partial_lines(Chunks(b"good\nba\xffd\n"))
    assert list(next(found)) == ["good"]
    with pytest.raises(DataError, match=r"stdin:2 is not UTF-8: 0xff \(invalid start byte\); convert it to UTF-8"):
        list(next(found))
    with pytest.raises(DataError, match="stdin:1 is not UTF-8: 0xe4"):
        heard(b"\xe4")


def test_nothing_at_all_is_an_error():
    with pytest.raises(DataError, match="stdin is empty; it needs at least one line"):
        heard()


def test_a_line_without_an_end_is_an_error():
    with pytest.raises(DataError, match="stdin:2 has more than 5 characters, the most of a line; split it"):
        heard(b"12345\n1234", b"56", limit=5)
