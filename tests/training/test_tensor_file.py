import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save
from torch import nn

from regard import manifest
from regard.errors import DamagedError, RefusedError
from regard.training.tensor_file import DTYPES, TensorFile, bounded_build, parse_header, parse_tensors, read_tensors

TENSORS = {
    **{kind: torch.ones(2, 3).to(dtype) for kind, dtype in DTYPES.items()},
    "none": torch.empty(0, 3),
    "one": torch.tensor(1.5),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def written(path, tensors):
    path.write_bytes(data := save(tensors))
    return (manifest.digest(data),)


def test_tensors_of_every_type_are_those_that_the_library_reads(path):
    digests = written(path, TENSORS)
    found, expected = read_tensors(path, digests), load(path.read_bytes())
    assert found.keys() == expected.keys()
    assert all(found[name].dtype == each.dtype and torch.equal(found[name], each) for name, each in expected.items())


def test_tensors_in_odd_places_are_read_too():
    header = {"a": ["U8", [1], [0, 1]], "b": ["F32", [2], [1, 9]]}
    text = json.dumps({k: dict(zip(("dtype", "shape", "data_offsets"), v, strict=True)) for k, v in header.items()}).encode()
    data = len(text).to_bytes(8, "little") + text + b"\7" + torch.tensor([1.0, 2.0]).numpy().tobytes()
    assert parse_tensors(bytearray(data), Path("x"))["b"].tolist() == [1.0, 2.0]


def entry(dtype="F32", shape=(2,), data_offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(data_offsets)}


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"[" * 100_000, "has a header that is not JSON"),
        (b"\xff", "has a header that is not JSON"),
        (b'{"a": 1, "a": 1}', "is not JSON: a name stands in it twice"),
        ([], "has a header that is no table"),
        ({"a": 3}, "without dtype, shape and data_offsets for 'a'"),
        ({"a": {"dtype": "F32"}}, "without dtype, shape and data_offsets for 'a'"),
        ({"a": entry(data_offsets=(0, 4, 8))}, "without dtype, shape and data_offsets for 'a'"),
        ({"a": entry("F8_E4M3")}, "with the type 'F8_E4M3' for 'a', and there are F64, F32,"),
        ({"a": entry([])}, "without dtype"),
        ({"a": entry(shape=(-2,))}, "whose shape or data_offsets for 'a' are no sizes"),
        ({"a": entry(shape=("2",))}, "are no sizes"),
        ({"a": entry(shape=(True, 2))}, "are no sizes"),
        ({"a": entry(data_offsets=(float("nan"), 8))}, "are no sizes"),
        ({"a": entry(data_offsets=(0, 10**30))}, "are no sizes"),
        ({"a": entry(shape=(3,))}, r"in which 'a' has 8 bytes and the shape \(3,\)"),
        ({"a": entry(shape=(2**62, 2**62))}, "in which 'a' has 8 bytes and the shape"),
        ({"a": entry(), "b": entry()}, "whose tensors do not fill its 8 bytes of data one after the other"),
        ({}, "do not fill its 8 bytes"),
        ({"a": entry(shape=(1,), data_offsets=(4, 8))}, "do not fill its 8 bytes"),
        ({"a": entry(shape=(4,), data_offsets=(0, 16))}, "do not fill its 8 bytes"),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_header_that_does_not_describe_the_file_is_damaged(header, text):
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    with pytest.raises(DamagedError, match=f"^x .*{text}"):
        parse_header(data, 8, Path("x"))


@pytest.mark.parametrize("head", [b"", b"\1", (100).to_bytes(8, "little"), (2**63).to_bytes(8, "little") + bytes(99)])
def test_a_header_longer_than_the_file_is_damaged(path, head):
    path.write_bytes(head)
    with pytest.raises(DamagedError, match=r"is no whole safetensors file: it has \d+ bytes, and its header"):
        read_tensors(path, (manifest.digest(head),))


def test_a_changed_byte_is_told_as_such_wherever_it_is(path):
    digests = written(path, TENSORS)
    whole = path.read_bytes()
    for place in (0, 3, 20, len(whole) - 1):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(data)
        with pytest.raises(DamagedError, match=re.escape(manifest.CHANGED.format(path))):
            read_tensors(path, digests)


def test_a_file_larger_than_the_memory_is_refused(path, monkeypatch):
    digests = written(path, TENSORS)
    monkeypatch.setattr("regard.training.tensor_file.MEMORY", 100)
    with pytest.raises(RefusedError, match=r"bytes, and this machine 100 of memory: open it on a larger one$"):
        read_tensors(path, digests)


def test_a_model_is_compared_with_the_header_and_not_with_the_data(path):
    with TensorFile(path, written(path, nn.Linear(3, 2).state_dict())) as file:
        assert file.build(lambda: nn.Linear(3, 2)).weight.shape == (2, 3)
        with pytest.raises(
            RefusedError, match=r"model\.safetensors is of another model: weight has shape \(2, 3\) there and"
        ):
            file.build(lambda: nn.Linear(4, 2))


def test_a_model_several_times_as_large_as_its_file_is_refused_before_it_has_values(path):
    built = []

    def linear(*sizes):
        built.append(nn.Linear(*sizes))
        return built[-1]

    with TensorFile(path, written(path, {"a": torch.ones(2)})) as file:
        with pytest.raises(
            RefusedError, match=r"is of another model: it has 1 tensors of 8 bytes, and the config beside it"
        ):
            file.build(lambda: linear(2**14, 2**12))  # 256 MB
        assert not built
        with pytest.raises(RefusedError, match=r"describes several times as many; take both of one training$"):
            file.build(lambda: nn.ModuleList(linear(2, 2) for _ in range(1000)))
        assert len(built) < 50


def test_what_is_built_elsewhere_or_later_does_not_count():
    with bounded_build(0, 0, "x"):
        pass
    assert nn.ModuleList(nn.Linear(1, 1) for _ in range(100))
