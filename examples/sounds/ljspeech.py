"""LJSpeech as tables: recordings beside train.tsv, dev.tsv and test.tsv, whose columns are their paths and normalised texts.

    python examples/sounds/ljspeech.py FOLDER OUT

FOLDER has metadata.csv (id|text|normalised text), and the recordings in opus.tar, or in a folder wavs. The last 30 ids are
to test on and the 20 before them to validate with.
"""

import csv
import sys
import tarfile
from pathlib import Path

TEST, DEV = 30, 20


def read_texts(path: Path) -> dict[str, str]:
    """Normalised text of each recording, in the order of the file."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)
        return {row[0]: " ".join(row[-1].split()) for row in rows if row}


def find_recordings(folder: Path, out: Path) -> dict[str, Path]:
    """Path of each recording; an archive is unpacked into `out`."""
    if (folder / "wavs").is_dir():
        return {path.stem: path.resolve() for path in (folder / "wavs").iterdir()}
    with tarfile.open(folder / "opus.tar") as archive:
        archive.extractall(out, filter="data")
    return {path.stem: path.resolve() for path in out.rglob("*.opus")}


def main(folder: Path, out: Path) -> None:
    """Write the tables."""
    out.mkdir(parents=True, exist_ok=True)
    texts, recordings = read_texts(folder / "metadata.csv"), find_recordings(folder, out)
    names = [name for name in sorted(texts) if name in recordings]
    first, last = len(names) - TEST - DEV, len(names) - TEST
    for part, chosen in (("train", names[:first]), ("dev", names[first:last]), ("test", names[last:])):
        lines = "".join(f"{recordings[name]}\t{texts[name]}\n" for name in chosen)
        (out / f"{part}.tsv").write_text(lines, encoding="utf-8")
        (out / f"{part}.txt").write_text("".join(f"{texts[name]}\n" for name in chosen), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
