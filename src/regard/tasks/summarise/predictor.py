"""Predictor of models that read documents: a file is one, and of a long one the beginning is read, and that is said."""

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence

from regard.data.records import Record
from regard.errors import DataError, DataWarning
from regard.inference.predictor import Input
from regard.inference.sequence_predictor import SequencePredictor

LONGEST = 10_000_000
"""Characters of a file that is one document; the rest of a longer one is not read."""


class DocumentPredictor(SequencePredictor):
    """Model that reads documents; one that is longer than data.max_source_length is cut, and a warning says by how much."""

    has_tabs = True
    reads_beginnings = True

    def group_lines(self, lines: Iterator[str]) -> Iterator[str]:
        """Documents of a file: all of its lines are one, unless each is a JSON object with a document in it."""
        lines = iter(lines)
        first = next((line for line in lines if line.strip()), None)
        if first is None:
            return
        if not first.lstrip().startswith("{"):
            yield join_lines(first, lines)
            return
        yield self.parse_object(first, 1)
        yield from (self.parse_object(line, number) for number, line in enumerate(lines, 2))

    def parse_object(self, line: str, number: int) -> str:
        """Document of a JSON object: the text of the source column, or of its first field."""
        if not line.strip():
            return ""
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"input:{number} begins a file of JSON objects, and is none: {line[:60]!r}") from None
        column = self.config.data.source
        values = list(row.values()) if isinstance(row, dict) else []
        text = row[column] if isinstance(row, dict) and column in row else values[0] if values else None
        if not isinstance(text, str):
            raise DataError(f"input:{number} needs a text in the field {column!r}, as the table that was trained on has one")
        return " ".join(text.split())

    def fits(self, source: Input) -> bool:
        """True if a document has a known word: of a long one the beginning is read."""
        return self.is_known(source)

    def select_fitting(self, prepared: Sequence[Record]) -> list[int]:
        """Indices of all records, since a document that is cut is answered too."""
        return list(range(len(prepared)))

    def warn_of_cuts(self, inputs: Sequence[Input]) -> None:
        """Warn of documents that are read in part."""
        most, cuts = self.codec.max_source_length - 1, list[tuple[int, int]]()
        for number, source in enumerate(inputs, 1):
            length = len(self.codec.source.encode(self.codec.prepare(self.read(source, number).source)))
            if length > most:
                cuts.append((number, length))
        if cuts:
            number, length = cuts[0]
            more = f" ({len(cuts):,} inputs are cut in all)" * (len(cuts) > 1)
            warnings.warn(
                f"input:{number} has {length:,} tokens: the first {most:,} are read, and {length - most:,} are cut{more}; "
                "a model trained with a larger data.max_source_length reads more",
                DataWarning,
                stacklevel=3,
            )


def join_lines(first: str, lines: Iterable[str]) -> str:
    """One text of the lines of a file, with a warning where the file is too long to be read whole."""
    parts, room = [first], LONGEST - len(first)
    for line in lines:
        if room < len(line):
            warnings.warn(f"the file is longer than {LONGEST:,} characters: the rest is not read", DataWarning, stacklevel=2)
            break
        parts.append(line)
        room -= len(line) + 1
    return " ".join(" ".join(parts).split())
