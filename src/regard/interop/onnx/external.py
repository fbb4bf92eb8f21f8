"""External data: tensors of a graph that lie in other files, which no graph of ours has and none is opened with.

A runtime opens the file that a tensor names, relative to the working directory where a graph comes as bytes, and three
mends of the check of such paths were incomplete (CVE-2022-25882, CVE-2024-27318, CVE-2026-27489). So the graph is read here
first, as the protobuf that it is, and refused where any tensor names a file, whichever it is.

https://github.com/onnx/onnx/blob/main/onnx/onnx.proto has the numbers of the fields.
"""

from collections.abc import Iterator
from typing import NamedTuple

from regard.errors import DamagedError

MESSAGES = {
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto",
        6: "GraphProto",
        10: "TensorProto",
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    "TensorProto": {},
}
"""Every message that can hold a tensor, and the fields through which it does."""
EXTERNAL_DATA, DATA_LOCATION = 13, 14
"""Fields of a TensorProto: the file, and where its values are (0: in the graph)."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf; groups (3, 4) no version of ONNX has used."""


class Field(NamedTuple):
    """A field of a message: its number, and its value or where its bytes are."""

    number: int
    wire: int
    value: int
    start: int
    end: int


def check_graph(data: bytes, name: str) -> None:
    """Raise DamagedError for a graph with a tensor in another file, or one that is no protobuf."""
    todo = [("ModelProto", 0, len(data))]
    while todo:
        kind, start, end = todo.pop()
        inner = MESSAGES[kind]
        for field in fields(data, start, end, name):
            if field.number in inner and field.wire == BYTES:
                todo.append((inner[field.number], field.start, field.end))
            elif kind == "TensorProto" and (
                field.number == EXTERNAL_DATA or (field.number == DATA_LOCATION and (field.wire != VARINT or field.value))
            ):
                raise DamagedError(
                    f"{name} keeps weights in another file (external data), which regard does not open: export it again"
                )


def fields(data: bytes, start: int, end: int, name: str) -> Iterator[Field]:
    """The fields of a message that lies between two places."""
    place = start
    while place < end:
        key, place = _varint(data, place, end, name)
        number, wire, value = key >> 3, key & 7, 0
        first = place
        if wire == VARINT:
            value, place = _varint(data, place, end, name)
        elif wire == BYTES:
            length, first = _varint(data, place, end, name)
            place = first + length
        elif wire in (FIXED64, FIXED32):
            place += 8 if wire == FIXED64 else 4
        else:
            raise DamagedError(f"{name} is no graph of ONNX: byte {place:,} begins a field of no known type")
        if place > end:
            raise DamagedError(f"{name} is no whole graph of ONNX: a field ends at byte {place:,}, behind its message")
        yield Field(number, wire, value, first, place)


def _varint(data: bytes, place: int, end: int, name: str) -> tuple[int, int]:
    """A number of up to ten bytes, seven bits in each, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= end:
            break
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise DamagedError(f"{name} is no graph of ONNX: byte {place:,} ends in the middle of a number")
