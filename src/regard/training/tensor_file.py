"""safetensors, read by us: the header is checked against the file and the model before any tensor is made.

    8 bytes: n, little-endian    n bytes: JSON {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}    data

https://huggingface.co/docs/safetensors has the format. Unlike its library, a tensor here is a view of the bytes that were
read, so that each weight is in memory once and is copied once, into the model.
"""

import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import get_ident
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from regard import manifest
from regard.errors import DamagedError, RefusedError
from regard.regular_files import MEMORY, SMALL, open_regular, read_exactly
from regard.training.state_dict import check_shapes, named_tensors

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
LONGEST = 100_000_000
"""The most bytes of a header, as in the library."""
MOST = 2**63
"""Exclusive upper bound of every size."""
TIES, SLACK, SPARE = 4, 64 * 2**20, 64
"""Bound of a model while it is built, where tied weights become one only at the end: a multiple of its file, and so many
bytes and tensors more."""

Built = TypeVar("Built", bound=nn.Module)


@dataclass(frozen=True)
class Entry:
    """A tensor as the header describes it; it has no values yet."""

    dtype: torch.dtype
    shape: torch.Size
    start: int
    end: int


def parse_header(header: bytes | bytearray, room: int, path: Path) -> dict[str, Entry]:
    """The tensors of a header whose data takes `room` bytes; DamagedError unless they fill it without gap or overlap."""
    try:
        table = json.loads(header, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} has a header that is not JSON: {error}") from error
    if not isinstance(table, dict):
        raise DamagedError(f"{path} has a header that is no table")
    table.pop("__metadata__", None)
    entries = {name: _entry(name, value, path) for name, value in table.items()}
    spans = sorted((entry.start, entry.end) for entry in entries.values())
    if any(left[1] != right[0] for left, right in pairwise([(0, 0), *spans, (room, room)])):
        raise DamagedError(f"{path} has a header whose tensors do not fill its {room:,} bytes of data one after the other")
    return entries


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name stands in it twice")
    return table


def _entry(name: str, value: Any, path: Path) -> Entry:
    try:
        kind, shape, (start, end) = value["dtype"], value["shape"], value["data_offsets"]
        numbers = [*shape, start, end]
        dtype = DTYPES.get(kind)
    except (TypeError, KeyError, ValueError) as error:
        raise DamagedError(f"{path} has a header without dtype, shape and data_offsets for {name!r}") from error
    if dtype is None:
        raise DamagedError(f"{path} has a header with the type {kind!r} for {name!r}, and there are {', '.join(DTYPES)}")
    if not isinstance(shape, list) or not all(type(number) is int and 0 <= number < MOST for number in numbers):
        raise DamagedError(f"{path} has a header whose shape or data_offsets for {name!r} are no sizes")
    if math.prod(shape) * dtype.itemsize != end - start:
        raise DamagedError(f"{path} has a header in which {name!r} has {end - start:,} bytes and the shape {tuple(shape)}")
    return Entry(dtype, torch.Size(shape), start, end)


def make_tensors(entries: Mapping[str, Entry], data: bytearray, offset: int) -> dict[str, Tensor]:
    """The tensors, as views of the bytes behind `offset`; a copy where the processor could not read one in its place."""
    tensors = {}
    for name, entry in entries.items():
        count, start = math.prod(entry.shape), offset + entry.start
        if count == 0:
            tensors[name] = torch.empty(entry.shape, dtype=entry.dtype)
        elif start % entry.dtype.itemsize:
            piece = data[start : offset + entry.end]
            tensors[name] = torch.frombuffer(piece, dtype=entry.dtype).view(entry.shape)
        else:
            tensors[name] = torch.frombuffer(data, dtype=entry.dtype, count=count, offset=start).view(entry.shape)
    return tensors


def parse_tensors(data: bytearray, path: Path) -> dict[str, Tensor]:
    """The tensors in the bytes of a file; they share its memory."""
    length = header_length(data[:8], len(data), path)
    entries = parse_header(data[8 : 8 + length], len(data) - 8 - length, path)
    return make_tensors(entries, data, 8 + length)


def header_length(head: bytes | bytearray, size: int, path: Path) -> int:
    """The bytes of the header in a file of `size` bytes that begins with `head`."""
    length = int.from_bytes(head[:8], "little")
    if len(head) < 8 or length > min(size - 8, LONGEST):
        raise DamagedError(f"{path} is no whole safetensors file: it has {size:,} bytes, and its header {length:,}")
    return length


class TensorFile:
    """A safetensors file that is open, its header read and its data not; to be used in a `with`.

    Damage that the SHA-256 knows is told as such, whatever else is wrong because of it.
    """

    def __init__(self, path: Path, digests: Collection[str | None], root: Path | None = None):
        self.path, self.digests = path, digests
        self.file = open_regular(path, root)
        self.size = os.fstat(self.file.fileno()).st_size

    def __enter__(self) -> "TensorFile":
        try:
            self.head = read_exactly(self.file, min(8, self.size), self.path)
            with self._doubted():
                length = header_length(self.head, self.size, self.path)
                self.head += read_exactly(self.file, length, self.path)
                self.entries = parse_header(self.head[8:], self.size - len(self.head), self.path)
        except BaseException:
            self.file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    @contextmanager
    def _doubted(self) -> Iterator[None]:
        """Context in which a fault of the header is reported as a changed file, where the SHA-256 of the file differs."""
        try:
            yield
        except (DamagedError, RefusedError) as error:
            self.file.seek(len(self.head))
            if self.size <= SMALL and manifest.digest(self.head, self.file.read(self.size)) not in self.digests:
                raise DamagedError(manifest.CHANGED.format(self.path)) from error
            raise

    def build(self, make: Callable[[], Built]) -> Built:
        """The model that `make` builds, which may take little more memory than the file has data, and fits its header."""
        with self._doubted():
            with bounded_build(self.size - len(self.head), len(self.entries), str(self.path)):
                model = make()
            check_shapes(named_tensors(model), self.entries, str(self.path))
        return model

    def read(self) -> dict[str, Tensor]:
        """The tensors; the data is read once, and its SHA-256 is one of those that were given."""
        if self.size > MEMORY:
            raise RefusedError(
                f"{self.path} has {self.size:,} bytes, and this machine {MEMORY:,} of memory: open it on a larger one"
            )
        self.file.seek(len(self.head))
        data = read_exactly(self.file, self.size - len(self.head), self.path)
        if manifest.digest(self.head, data) not in self.digests:
            raise DamagedError(manifest.CHANGED.format(self.path))
        return make_tensors(self.entries, data, 0)


@contextmanager
def bounded_build(room: int, count: int, origin: str) -> Iterator[None]:
    """Refuse a model of many more parameters, or many more bytes of them, than a file holds, while it is built in here.

    A module registers a parameter before its values are drawn, so that what is refused was never in memory. This costs one
    call for each parameter; building a model a second time, on the meta device, took four times as long as building it.
    """
    bytes_left, tensors_left, thread = TIES * room + SLACK, TIES * count + SPARE, get_ident()

    def register(_: nn.Module, name: str, tensor: Tensor | None) -> None:
        nonlocal bytes_left, tensors_left
        if tensor is None or get_ident() != thread:
            return
        bytes_left -= tensor.numel() * tensor.element_size()
        tensors_left -= 1
        if min(bytes_left, tensors_left) < 0:
            raise RefusedError(
                f"{origin} is of another model: it has {count:,} tensors of {room:,} bytes, and the config beside it "
                "describes several times as many; take both of one training"
            )

    handle = register_module_parameter_registration_hook(register)
    try:
        yield
    finally:
        handle.remove()


def read_tensors(path: Path, digests: Collection[str | None]) -> dict[str, Tensor]:
    """The tensors of a file whose SHA-256 is one of `digests`, read once."""
    with TensorFile(path, digests) as file:
        return file.read()
