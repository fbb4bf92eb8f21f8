"""Processor: how pictures are read before a model sees them, as preprocessor_config.json says."""

import math
from os.path import lexists
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RefusedError
from regard.interop.huggingface.settings import table_of

FILE = "preprocessor_config.json"
NEWER = "processor_config.json"
"""File of a joint processor of pictures and texts."""
KNOWN = frozenset(
    {
        *("do_resize", "size", "resample", "do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std"),
        *("do_center_crop", "crop_size", "do_convert_rgb", "image_processor_type", "feature_extractor_type"),
        *("processor_class", "do_pad", "pad_size", "data_format", "default_to_square", "device", "disable_grouping"),
        *("input_data_format", "return_tensors", "image_seq_length", "use_fast", "_valid_processor_keys"),
    }
)
BILINEAR = 2


class Standard(NamedTuple):
    """Mean and standard deviation of each channel."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


def read(folder: Path, size: tuple[int, int], channels: int) -> Standard:
    """The mean and the deviation of the channels; refused where pictures are read in a way that is not ours.

    Where nothing is said they are 0.5, as for a ViTImageProcessor.
    """
    path = folder / FILE
    table = table_of(path) if lexists(path) else {}
    if not lexists(path) and lexists(folder / NEWER):
        path = folder / NEWER
        table = table_of(path).get("image_processor") or {}
    table = {name: value for name, value in table.items() if value is not None}
    if strange := sorted(table.keys() - KNOWN):
        raise RefusedError(f"{path} has a field {strange[0]!r} that is not known: it could change what the model sees")
    _same(path, table, size)
    if table.get("do_normalize", True) is False:
        return Standard((0.0,) * channels, (1.0,) * channels)
    mean, deviation = (table.get(name, [0.5] * channels) for name in ("image_mean", "image_std"))
    return Standard(
        _numbers(path, "image_mean", mean, channels, 0.0), _numbers(path, "image_std", deviation, channels, 1e-6)
    )


def _same(path: Path, table: dict[str, Any], size: tuple[int, int]) -> None:
    """Refuse pictures that become something else than the model's size, in bytes over 255, averaged between pixels."""
    sides = _sides(table.get("size", size))
    crop = _sides(table.get("crop_size", sides)) if table.get("do_center_crop", False) else sides
    rescale = table.get("rescale_factor", 1 / 255)
    needed: dict[str, tuple[Any, Any]] = {
        "do_resize": (table.get("do_resize", True), True),
        "size": (sides, size),
        "crop_size": (crop, sides),
        "resample": (table.get("resample", BILINEAR), BILINEAR),
        "do_rescale": (table.get("do_rescale", True), True),
        "do_pad": (table.get("do_pad", False), False),
        "rescale_factor": (rescale if not isinstance(rescale, float) or abs(rescale * 255 - 1) > 1e-6 else "1/255", "1/255"),
    }
    for name, (value, wanted) in needed.items():
        if value != wanted:
            raise RefusedError(f"{path} has {name}={value!r}, and models with {wanted!r} alone can be taken")


def _sides(value: Any) -> Any:
    """Height and width, however they are said."""
    if isinstance(value, dict) and value.keys() == {"height", "width"}:
        return value["height"], value["width"]
    if isinstance(value, int):
        return value, value
    return tuple(value) if isinstance(value, list) else value


def _numbers(path: Path, name: str, values: Any, channels: int, least: float) -> tuple[float, ...]:
    right = isinstance(values, list) and len(values) == channels and all(isinstance(value, int | float) for value in values)
    if not right or not all(least <= value < math.inf for value in values):
        raise RefusedError(
            f"{path} needs {name} to have a number from {least} up for each of {channels} channels, got {values!r}"
        )
    return tuple(map(float, values))
