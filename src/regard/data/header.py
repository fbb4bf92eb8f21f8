"""Header and columns of a TSV table: warnings where they are probably read otherwise than they are meant.

Columns are numbers unless a setting names one; then the first line is a header. A table with a header,
a column of ids or more columns than are read would be learnt from all the same, and teach something else.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.config import shortened
from regard.errors import DataWarning

IDS = 10
"""Number of lines after which a column of increasing integers counts as one of ids."""
NAMES = """
    source target src tgt trg input output sentence sentences translation reference text label labels class caption
    captions image images picture path file filename id ids idx index key no number line question answer word words
    lemma form features spelling pronunciation phonemes graphemes original english chinese german french spanish italian
    portuguese russian japanese korean arabic czech dutch polish turkish hindi lang language
    ar bg cs da de el en es et fa fi fr he hi hu id it ja ko lt lv nl no pl pt ro ru sk sl sv th tr uk vi zh cn us gb
"""
NAME = re.compile(rf"({'|'.join(NAMES.split())})([ _-]({'|'.join(NAMES.split())}))?\d?", re.IGNORECASE)
"""Column names that tables of such tasks have."""


class TableSettings(NamedTuple):
    """Settings of `data` that say how a table is read."""

    header: bool | None = None
    """True if the first line is a header; None: only where a column is named."""
    columns: tuple[str, ...] = ()
    """Settings that choose the columns, "data.source" and so on; without them nothing is checked."""


def table_settings(data: Any) -> TableSettings:
    """The settings of a table, of the config of any task."""
    return TableSettings(getattr(data, "header", None), tuple(f"data.{name}" for name in data.columns))


def is_header(cells: Sequence[str]) -> bool:
    """Return True if all cells of a line are usual names of columns, such as "source" and "target", or "en" and "zh"."""
    names = [cell.strip().lower() for cell in cells]
    return len(names) > 1 and len({*names}) == len(names) and all(map(NAME.fullmatch, names))


class ColumnChecks:
    """Checks of the columns of one table, line by line; `positions` are those that are read, from 0."""

    def __init__(self, path: str, settings: TableSettings, positions: Sequence[int | None], named: bool):
        self.path, self.settings, self.named = path, settings, named
        self.positions = [position for position in positions if position is not None]
        self.count, self.numbers = 0, dict[int, int]()

    def check(self, cells: Sequence[str], where: str) -> bool:
        """Check the columns of a line; returns False when nothing is left to check."""
        self.count += 1
        if self.count == 1:
            self.numbers = dict.fromkeys(self.positions, -1)
            if not self.named:
                self._check_width(cells)
            if self.settings.header is None and not self.named and is_header(cells):
                self._warn_of_header(cells, where)
                return True
        for position, last in list(self.numbers.items()):
            cell = cells[position].strip() if position < len(cells) else ""
            if cell.isascii() and cell.isdecimal() and len(cell) < 19 and int(cell) > last:
                self.numbers[position] = int(cell)
            else:
                del self.numbers[position]
        if self.numbers and self.count >= IDS and len(cells) > 1:
            self._warn_of_ids(min(self.numbers))
            return False
        return bool(self.numbers)

    def _check_width(self, cells: Sequence[str]) -> None:
        usual = self.positions == list(range(len(self.positions)))  # others have been chosen
        if usual and len(cells) > len(self.settings.columns):
            names = self.settings.columns
            pairs = [f"{place + 1} ({name})" for place, name in zip(self.positions, names, strict=False)]
            read = f"columns {' and '.join(pairs)}" if len(names) == len(pairs) else f"{len(names)} of them"
            self._warn(f"{self.path} has {len(cells)} columns, and {read} are read; {self._advice()}")

    def _warn_of_header(self, cells: Sequence[str], where: str) -> None:
        names = ", ".join(map(shortened, cells))
        self._warn(
            f"{where} looks like a header ({names}), and is read as data; data.header=true leaves it out, data.header=false "
            "says that it is data"
        )

    def _warn_of_ids(self, position: int) -> None:
        self._warn(
            f"column {position + 1} of {self.path} looks like ids, increasing numbers, and is read as text; {self._advice()}"
        )

    def _advice(self) -> str:
        return f"{' and '.join(self.settings.columns)} choose columns, by number or by the name in a header"

    def _warn(self, text: str) -> None:
        warnings.warn(text, DataWarning, stacklevel=2)
