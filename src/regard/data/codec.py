"""Parts that codecs of all modalities share: the report on encoded records, and the refusal of unknown labels."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from regard.data.split import HeldOut
from regard.errors import DataError

SETTINGS = "codec.json"
"""File of a run directory with the settings of its codec."""
LISTED_PLACES, LISTED_NAMES = 5, 20
"""Unknown labels, and known ones, that an error lists at most."""
LOG_NAMES = {"encoded": "kept"}
"""Fields of a report whose name in a log is another."""

OverLong = Literal["truncate", "drop"]


@runtime_checkable
class DataReport(Protocol):
    """Report of a task on the data that it reads: its text is printed before a training, its notes go to the log."""

    @property
    def held_out(self) -> HeldOut | None: ...

    def notes(self) -> dict[str, Any]: ...


class Report(NamedTuple):
    """Counts of records that were read, encoded, cut or dropped for their length, and the share of unknown tokens."""

    read: int
    encoded: int
    cut_sources: int
    cut_targets: int
    dropped: int
    unknown: float
    """Share of UNK among the tokens that were encoded, EOS aside."""
    held_out: HeldOut | None = None
    """Lines of the same table that validate and are not among these."""

    def notes(self) -> dict[str, Any]:
        """Fields by their names in a log."""
        counts = {LOG_NAMES.get(name, name): value for name, value in self._asdict().items() if name != "held_out"}
        return counts if self.held_out is None else counts | {"held_out": self.held_out.notes()}

    def __str__(self) -> str:
        parts = [f"{self.encoded:,} of {self.read:,} records"]
        parts += [f"{self.dropped:,} dropped as too long"] * (self.dropped > 0)
        parts += [f"{self.cut_sources:,} sources and {self.cut_targets:,} targets cut"] * (
            self.cut_sources + self.cut_targets > 0
        )
        parts += [f"{self.unknown:.2%} of the tokens unknown"] * (self.unknown > 0)
        return ", ".join(parts)


class Corpus(NamedTuple):
    """Examples of any modality, and the report on how they were encoded."""

    examples: list[Any]
    report: Report


def refuse_unknown_labels(unknown: Sequence[str], name: str, known: Sequence[str]) -> None:
    """Raise unless `unknown` is empty: it lists labels with their places; `name` is what an error calls labels."""
    if not unknown:
        return
    more = f" and {len(unknown) - LISTED_PLACES:,} more" * (len(unknown) > LISTED_PLACES)
    raise DataError(
        f"{len(unknown):,} {name} were not there to be learned: {', '.join(unknown[:LISTED_PLACES])}{more}; there are "
        f"{', '.join(known[:LISTED_NAMES])}{' ...' * (len(known) > LISTED_NAMES)}"
    )
