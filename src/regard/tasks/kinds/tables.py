"""The tables that a config names, to train on and to validate with; of one alone, a part is held out to validate with."""

import os
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.records import Record, locate
from regard.data.split import HeldOut, hold_out
from regard.errors import DataError

Read = Callable[[Any, str], list[Any]]
"""Reader of a table for a family of tasks."""


class Tables(NamedTuple):
    """Records for training and for validation."""

    train: list[Any]
    valid: list[Any]
    held_out: HeldOut | None = None
    """None where each has a table of its own."""
    trained: Sequence[bool] | None = None
    """For each line of the one table whether it is trained on; None: all of them."""

    @property
    def known(self) -> list[Any]:
        """Records that define the labels: those for training and, where both are of one table, those for validation."""
        return self.train if self.held_out is None else [*self.train, *self.valid]

    def prepared(self, prepare: Callable[[Any], Any]) -> "Tables":
        """Tables with their records prepared by a task."""
        return self._replace(train=list(map(prepare, self.train)), valid=list(map(prepare, self.valid)))


def tables(data: Any, read: Read, by: str, sources: Callable[[list[Any]], list[str]]) -> Tables | None:
    """Both; None where none is named, and a task is to draw its own.

    `by` is the word for what must not be on both sides of one table, and `sources` tells it of each line.
    """
    if data.train is None and data.valid is not None:
        raise DataError("data.valid is given and data.train is not: name a file to train on")
    if data.train is None:
        return None
    if data.valid is not None:
        return Tables(read(data, data.train), read(data, data.valid))
    lines, name = read(data, data.train), "standard input" if data.train == "-" else data.train
    out = hold_out(sources(lines), name, by)
    trained = [not flag for flag in out]
    held_out = HeldOut(sum(out), len(lines), name, by)
    return Tables(list(compress(lines, trained)), list(compress(lines, out)), held_out, trained)


def texts(records: Sequence[Record]) -> list[str]:
    """The sources of records as they stand."""
    return [record.source for record in records]


def pictures(records: Sequence[Record]) -> list[str]:
    """The pictures of records, by their paths from the folder of the first table; however a path is spelt."""
    folder = Path(records[0].where.rpartition(":")[0]).parent
    return [os.path.relpath(locate(record), folder) for record in records]
