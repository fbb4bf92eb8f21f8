"""The bytes of a file: written whole or not at all, mapped and not read, and believed only as far as they reach."""

import os
import tracemalloc

import numpy as np
import pytest

from regard.viewer.io import load, offsets, save
from regard.viewer.io.errors import TraceError

from .traces import raw, refused, simple, whole


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(simple(), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save(whole(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_large_file_opens_without_being_read_into_memory(path):
    weights = np.zeros((12, 2048, 1024), np.float16)
    weights[:, :, 7] = 1
    save(simple(weights), path)
    tracemalloc.start()
    trace = load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 70e6
    assert peak < 1e6
    assert trace.attention().weights[3, 4, 7] == 1
    with pytest.raises(ValueError, match="read-only"):
        trace.attention().weights[0] = 0


def test_offsets_say_where_the_bytes_are(path):
    trace = simple()
    save(trace, path)
    place = offsets(path)["a/0/0/f32"]
    assert (place.dtype, place.shape) == ("F32", (1, 2, 3))
    data = path.read_bytes()[place.start : place.end]
    np.testing.assert_array_equal(np.frombuffer(data, "<f4").reshape(1, 2, 3), trace.attention().weights)


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"PK\x03\x04 a zip or a pickle of long ago", b"\x02" + b"\0" * 7 + b"[]", b"\0" * 30]
)
def test_a_file_of_another_kind(path, data):
    path.write_bytes(data)
    refused(path, "is not a safetensors file, so it is no trace")


def test_a_file_cut_off_anywhere_is_refused(path):
    save(whole(), path)
    data = path.read_bytes()
    for length in [*range(40), *range(40, len(data), 61), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(TraceError, match=r"cut off|not a safetensors file"):
            load(path)
    path.write_bytes(data + b"x")
    refused(path, "has 1 bytes behind its last array")


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        (b"{nonsense", b"", "the header is not JSON"),
        (b'{"a": 1, "a": 2}', b"", "the header is not JSON: the key 'a' stands twice"),
        (b'{"a": NaN}', b"", "NaN is not a number"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"", "the header is nested too deep to be read"),
        ({"__metadata__": {"a": 1}}, b"", "the metadata of its header must be texts by name"),
        ({"a": {"dtype": "F32"}}, b"", "the entry of 'a' must have dtype, shape and data_offsets"),
        ({"a": 3}, b"", "the entry of 'a' must have"),
        ({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1", "the array 'a' is of type F8_E4M3; a trace holds U8, BOOL"),
        ({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}}, b"1", "the array 'a' has the shape [-1], which is none"),
        ({"a": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}}, b"1", "the array 'a' has the shape [True]"),
        ({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]}}, b"1234", "of shape (1000000000000,) in F32 needs 4,000,000,000,000 bytes, it has 4"),
        ({"a": {"dtype": "U8", "shape": [10**12], "data_offsets": [0, 10**12]}}, b"1", "is cut off: its arrays end at byte 1,000,000,000,0"),
        ({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"12", "the array 'a' begins at byte"),
        ({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}, b"123", "the array 'b' begins at byte"),
    ],
)  # fmt: skip
def test_a_header_that_lies(path, header, data, said):
    raw(path, header, data)
    refused(path, said)


def test_a_header_longer_than_the_file(path):
    path.write_bytes((1000).to_bytes(8, "little") + b"{}")
    refused(path, "is cut off: its header has 1,000 bytes and 2 are there")


@pytest.mark.parametrize("shape", [[0, 10**30], [0, 1 << 62], [0, 1 << 31, 1 << 31]])
def test_an_array_of_nothing_claims_no_more_than_numpy_can_make(path, shape):
    raw(path, {"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}})
    refused(path, "which is none")
