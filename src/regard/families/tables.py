"""The tables that a config names: to train on, and to validate with."""

from typing import Any

from regard.data.lines import DataError


def paths(data: Any) -> tuple[str, str] | None:
    """Both; None where neither is named, and a task is to draw its own."""
    if data.train is None and data.valid is not None:
        raise DataError("data.valid is given and data.train is not: name a file to train on")
    if data.train is not None and data.valid is None:
        raise DataError("data.train is given and data.valid is not: name a file to validate with")
    return None if data.train is None else (data.train, data.valid)
