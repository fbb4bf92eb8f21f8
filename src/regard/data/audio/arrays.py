"""Precomputed features: arrays of frames x channels in .npy, .npz and .safetensors files.

FILE.npz#NAME and FILE.safetensors#NAME is one of several arrays in a file; without a name the file holds one. Pickled arrays
are refused. Numbers may be of any float or integer type, and are read as float32.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.lib import format as numpy_format
from torch import Tensor

from regard.data.audio.reading import describe
from regard.data.lines import unreadable
from regard.errors import DataError
from regard.inputs import open_regular

SUFFIXES = (".npy", ".npz", ".safetensors")
MAX_NUMBERS = 1 << 30
"""The most numbers of an array: a day of 80 channels has 700 million."""


def is_array(path: Path | str) -> bool:
    """Return True if a path names an array of features."""
    return split_name(path)[0].endswith(SUFFIXES)


def split_name(path: Path | str) -> tuple[str, str | None]:
    """File of a path, and the name of the array in it behind a #."""
    text = str(path)
    file, mark, name = text.rpartition("#")
    return (file, name) if mark and file.endswith(SUFFIXES) else (text, None)


def read_array(path: Path | str, where: str | None = None) -> Float[Tensor, "frames channels"]:
    """Read the features of one recording."""
    frames, channels = read_shape(path, where)
    array = _load(path, where)
    features = torch.from_numpy(np.ascontiguousarray(array, np.float32)).view(frames, channels)
    if not features.isfinite().all():
        bad = int((~features.isfinite()).any(1).nonzero()[0])
        raise DataError(f"{describe(path, where)} needs finite features, got NaN or infinity, first in frame {bad + 1:,}")
    return features


def read_shape(path: Path | str, where: str | None = None) -> tuple[int, int]:
    """Frames and channels of the features of one recording, by the header of their file."""
    shape, kind = _header(path, where)
    if len(shape) != 2 or not all(shape) or kind not in "fiu":
        raise DataError(
            f"{describe(path, where)} needs an array of numbers, frames x channels, with at least one of each, got one of "
            f"shape {tuple(shape)} and kind {kind!r}"
        )
    if shape[0] * shape[1] > MAX_NUMBERS:
        raise DataError(f"{describe(path, where)} has {shape[0]:,} frames of {shape[1]:,} channels; cut it into parts")
    return int(shape[0]), int(shape[1])


def _header(path: Path | str, where: str | None) -> tuple[tuple[int, ...], str]:
    """Shape of an array, and the kind of its numbers."""
    file, name = split_name(path)
    try:
        if file.endswith(".safetensors"):
            with _safetensors(file) as tensors:
                part = tensors.get_slice(_choose(file, name, list(tensors.keys())))
                return tuple(part.get_shape()), part.get_dtype()[0].lower().replace("b", "f")
        with open_regular(file) as opened:
            if file.endswith(".npy"):
                return _npy_header(opened)
            archive = zipfile.ZipFile(opened)
            with archive, archive.open(_choose(file, name, _members(archive)) + ".npy") as member:
                return _npy_header(member)
    except DataError as error:
        raise DataError(describe(str(error), where)) from error
    except Exception as error:  # a damaged header may raise anything
        raise _damaged(file, where, error) from error


def _load(path: Path | str, where: str | None) -> Any:
    file, name = split_name(path)
    try:
        if file.endswith(".safetensors"):
            with _safetensors(file) as tensors:
                return tensors.get_tensor(_choose(file, name, list(tensors.keys()))).float().numpy()
        with open_regular(file) as opened:
            if file.endswith(".npy"):
                return numpy_format.read_array(opened, allow_pickle=False)
            with zipfile.ZipFile(opened) as archive, archive.open(f"{_choose(file, name, _members(archive))}.npy") as member:
                return numpy_format.read_array(member, allow_pickle=False)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise _damaged(file, where, error) from error


def _safetensors(file: str) -> Any:
    from safetensors import safe_open

    with open_regular(file):
        return safe_open(file, framework="pt")


def _npy_header(file: Any) -> tuple[tuple[int, ...], str]:
    version = numpy_format.read_magic(file)
    read = numpy_format.read_array_header_1_0 if version == (1, 0) else numpy_format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype.kind


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _choose(file: str, name: str | None, names: list[str]) -> str:
    """Name of the array that is meant."""
    if name in names:
        return str(name)
    if name is None and len(names) == 1:
        return names[0]
    listed = ", ".join(sorted(names)[:5]) + " ..." * (len(names) > 5)
    if name is None:
        raise DataError(f"{file} holds {len(names):,} arrays; name one, as {file}#NAME: there are {listed or 'none'}")
    raise DataError(f"{file} has no array {name!r}; there are {listed or 'none'}")


def _damaged(file: str, where: str | None, error: Exception) -> DataError:
    if isinstance(error, OSError) and not isinstance(error, zipfile.BadZipFile):
        return DataError(describe(unreadable(file, error), where))
    kind = Path(file).suffix
    return DataError(f"{describe(file, where)} is no {kind} file of features, or it is damaged: {error}")
