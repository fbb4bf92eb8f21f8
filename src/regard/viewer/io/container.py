"""The container of a trace: named arrays and one text in a safetensors file, written whole or not at all, read by mapping.

    8 bytes: length of the header | header: JSON, name -> {dtype, shape, data_offsets} | the arrays, one after the other

https://huggingface.co/docs/safetensors. Reading copies nothing: an array is a view of the file, so that 600 MB open at once
and only what is looked at is ever read. A header is believed only as far as the file's length bears it out.
"""

import json
import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from regard.data.axis import Array
from regard.viewer.io.errors import TraceError

DTYPES = {"U8": "u1", "BOOL": "?", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
LONGEST_HEADER = 100_000_000
"""Maximum length of a header, as in safetensors."""
MOST_CELLS = 1 << 48
"""An array with a side of 0 may claim any length for the others, which no file bears out and numpy cannot make."""


class Place(NamedTuple):
    """Place of an array in its file: bytes `start` to `end`, counted from the file's first."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def write(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write a file in the place of one that may stand there; whoever reads meanwhile finds the old one or the new."""
    from regard.io import replacing, room

    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at, in_order = 0, sorted(arrays.items(), key=lambda pair: -pair[1].itemsize)  # so that every number is aligned
    for name, array in in_order:
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    size = at + len(text) + 8
    with replacing(path, size) as file, room(path, size):
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in in_order:
            file.write(np.ascontiguousarray(array).reshape(-1).data)


def offsets(path: Path) -> dict[str, Place]:
    """Places of the arrays of a file, for a reader that wants a few bytes of one."""
    with open(path, "rb") as file:
        return _header(file.read, os.fstat(file.fileno()).st_size, path)[0]


def read(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Every array, as a view of the file that cannot be written to, and the metadata."""
    with open(path, "rb") as file:
        places, metadata = _header(file.read, os.fstat(file.fileno()).st_size, path)
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {name: _view(mapping, place) for name, place in places.items()}, metadata


def strict_json(text: str | bytes, what: str) -> Any:
    """JSON in which no key stands twice and every number is one."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise TraceError(f"{what} is nested too deep to be read") from None
    except ValueError as error:
        raise TraceError(f"{what} is not JSON: {error}") from None


def _view(mapping: mmap.mmap, place: Place) -> Array:
    dtype = np.dtype(DTYPES[place.dtype])
    count = math.prod(place.shape)
    if count == 0:
        return np.zeros(place.shape, dtype)
    return np.frombuffer(mapping, dtype, count, place.start).reshape(place.shape)


def _header(take: Any, size: int, path: Path) -> tuple[dict[str, Place], dict[str, str]]:
    length = int.from_bytes(take(8), "little")
    if size < 10 or not 2 <= length <= LONGEST_HEADER or take(1) != b"{":
        raise TraceError(f"{path} is not a safetensors file, so it is no trace; traces end in .attn.safetensors")
    if length > size - 8:
        raise TraceError(f"{path} is cut off: its header has {length:,} bytes and {size - 8:,} are there; write it again")
    header = strict_json(b"{" + take(length - 1), f"{path}: the header")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise TraceError(f"{path}: the metadata of its header must be texts by name")
    first = 8 + length
    places = {name: _place(name, entry, first, path) for name, entry in header.items()}
    _together(places, first, size, path)
    return places, metadata


def _place(name: str, entry: Any, first: int, path: Path) -> Place:
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)], **rest} if not rest:
            pass
        case _:
            received = str(entry)[:80]
            raise TraceError(f"{path}: the entry of {name!r} must have dtype, shape and data_offsets, it is {received}")
    if dtype not in DTYPES:
        raise TraceError(f"{path}: the array {name!r} is of type {dtype}; a trace holds {', '.join(DTYPES)}")
    whole = all(type(side) is int and side >= 0 for side in shape) and len(shape) <= 32
    if not whole or math.prod(side or 1 for side in shape) > MOST_CELLS:
        raise TraceError(f"{path}: the array {name!r} has the shape {str(shape)[:80]}, which is none")
    needed = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if end - start != needed:
        raise TraceError(
            f"{path}: the array {name!r} of shape {tuple(shape)} in {dtype} needs {needed:,} bytes, it has {end - start:,}"
        )
    return Place(dtype, tuple(shape), first + start, first + end)


def _together(places: Mapping[str, Place], first: int, size: int, path: Path) -> None:
    """Arrays lie one after the other and fill the file, as safetensors demands: nothing overlaps, nothing is hidden."""
    at = first
    for name, place in sorted(places.items(), key=lambda pair: (pair[1].start, pair[1].end)):
        if place.start != at:
            raise TraceError(f"{path}: the array {name!r} begins at byte {place.start:,}, and the one before ends at {at:,}")
        at = place.end
    if at > size:
        raise TraceError(f"{path} is cut off: its arrays end at byte {at:,} and it has {size:,}; write it again")
    if at < size:
        raise TraceError(f"{path} has {size - at:,} bytes behind its last array; write it again")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"the key {twice!r} stands twice")
    return table


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")
