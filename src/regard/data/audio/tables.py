"""Tables of recordings and their texts: TSV, JSONL, Parquet, or a folder in the style of Kaldi.

    table.tsv             columns with the path of a recording and its text
    folder/wav.scp        UTTERANCE PATH          one line for each recording
    folder/text           UTTERANCE WORDS ...     one line for each recording, in any order

Paths count from the folder of the table. Commands (lines of wav.scp that end with |) are not run.
"""

from collections.abc import Iterator
from pathlib import Path

from regard.config import AudioTextData
from regard.data import table
from regard.data.header import table_settings
from regard.data.lines import Line, bounds, lines
from regard.data.records import Record, parse_lines, record
from regard.errors import DataError

NAMES = ("audio", "text")


def read_records(data: AudioTextData, path: str) -> list[Record]:
    """The records of a table or of a Kaldi folder."""
    if Path(path).is_dir():
        return read_kaldi(path)
    return list(table.read(path, data.audio, data.text, names=NAMES, bounds=bounds(data), settings=table_settings(data)))


def read_kaldi(folder: str) -> list[Record]:
    """The records of a Kaldi folder, in the order of wav.scp."""
    root = Path(folder)
    for name in ("wav.scp", "text"):
        if not (root / name).is_file():
            raise DataError(f"{folder} is a folder without {name}: a Kaldi folder has wav.scp and text; or name a table")
    if (root / "segments").exists():
        raise DataError(f"{folder} has segments, parts of recordings, which are not read; cut the recordings first")
    texts = dict(_read_pairs(root / "text"))
    sounds = dict(_read_pairs(root / "wav.scp"))
    if missing := [name for name in sounds if name not in texts]:
        listed = ", ".join(missing[:5]) + " ..." * (len(missing) > 5)
        raise DataError(f"{len(missing):,} of {len(sounds):,} recordings of {folder}/wav.scp have no line in text: {listed}")

    def build(name: str) -> Record:
        path, line = sounds[name]
        if path.endswith("|"):
            raise DataError(f"{line.where} is a command, which is not run; write its output to a file and name that")
        text, place = texts[name]
        return record(path, text, place.where, NAMES)

    return list(parse_lines(str(root), sounds, build))


def _read_pairs(path: Path) -> Iterator[tuple[str, tuple[str, Line]]]:
    """Name, value and line of each line of a file."""
    names = set[str]()
    for line in lines(str(path)):
        name, _, value = line.text.strip().partition(" ")
        if not name or name in names:
            raise DataError(f"{line.where} needs the name of an utterance that no other line has, got {name!r}")
        names.add(name)
        yield name, (value.strip(), line)
