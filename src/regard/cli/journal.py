"""A journal of answers to a long file, so that a process that is killed at any instant repeats and loses no line.

OUT.partial             answers to all windows of lines that are done, in order
OUT.partial.journal     its head: what is answered, by which model, how; how many lines and bytes of OUT.partial count; then
                        a line for each answer of the window at hand, in the order in which they were found

A head is written anew, all at once, when a window has been put behind the others. What OUT.partial has beyond its bytes, and
what follows a torn line of the journal, was being written when the process died.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from regard.data.lines import DataError
from regard.training import atomic
from regard.training.errors import RefusedError

FORMAT = 1
PIECE = 1 << 20


class Written(NamedTuple):
    """What is written for an input, and whether the model knew nothing in it."""

    text: str
    strange: bool = False


class Head(NamedTuple):
    """How far the answers have come."""

    lines: int = 0
    size: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    strange: int = 0
    first: int = 0
    """The first line, from 1, in which the model knew nothing."""


class Journal:
    """The answers that go to `out`, used inside `with`. `work` says what is answered, by which model, and how.

    Where a journal of the same work lies beside `out`, it goes on after it, and `word` says so; so it does where there is
    one that cannot be gone on with. Work of which some part is None, such as lines from a pipe, is never gone on with.
    """

    def __init__(self, out: Path, work: Mapping[str, str | None]):
        self.out, self.work = out, dict(work)
        self.partial, self.path = (out.with_name(f"{out.name}.partial{end}") for end in ("", ".journal"))
        self.head, self.noted, self.word = Head(), dict[int, Written](), ""

    def __enter__(self) -> "Journal":
        if self.out.exists() and not self.out.is_file():
            raise DataError(f"--out needs the name of a file, and {self.out} is something else; choose another")
        self.answers = self._locked()
        self._resume()
        self.answers.truncate(self.head.size)
        self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.lines.close()
        if kind is not None and not self.head.lines and not self.noted:  # nothing was answered
            self.partial.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
        self.answers.close()

    def note(self, place: int, written: Written) -> None:
        """Keep what is written for an input of the window at hand, counted from 0."""
        self.noted[place] = written
        with atomic.room(self.path):
            self.lines.write(_line(place, written))
            self.lines.flush()

    def turn(self) -> None:
        """Put the window, all of which is noted, behind those before it."""
        each = [self.noted[place] for place in range(len(self.noted))]
        data = "".join(one.text for one in each).encode()
        strange = [place for place, one in enumerate(each, self.head.lines + 1) if one.strange]
        with atomic.room(self.partial):
            self.answers.write(data)
            self.answers.flush()
            os.fsync(self.answers.fileno())
        self.digest.update(data)
        before = self.head
        self.head = Head(
            before.lines + len(each),
            before.size + len(data),
            self.digest.hexdigest(),
            before.strange + len(strange),
            before.first or (strange[0] if strange else 0),
        )
        self.noted = {}
        self.lines.close()
        self._begin()

    def finish(self) -> None:
        """Everything is answered: the answers take their name."""
        os.replace(self.partial, self.out)
        self.path.unlink()
        atomic.flush(self.out.absolute().parent)

    def _locked(self) -> BinaryIO:
        """The partial file, which nobody else writes; opened anew where somebody has just finished with it."""
        while True:
            try:
                file = self.partial.open("a+b")
            except OSError as error:
                raise DataError(f"--out cannot write {self.partial}: {error.strerror}; choose another place") from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise RefusedError(
                    f"{self.partial} is being written by another process: wait, or choose another --out"
                ) from error
            if self.partial.exists() and os.path.samestat(os.fstat(file.fileno()), self.partial.stat()):
                return file
            file.close()

    def _begin(self) -> None:
        """Write the journal anew: its head, and what is noted of the window at hand."""
        head = json.dumps({"format": FORMAT, "work": self.work, "head": self.head._asdict()}).encode() + b"\n"
        atomic.write(self.path.absolute(), head + b"".join(_line(*each) for each in self.noted.items()))
        self.lines = self.path.open("ab")

    def _resume(self) -> None:
        """Take up what lies there, if it is of the same work and whole; else say why not."""
        self.digest = hashlib.sha256()
        try:
            head, *lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        table = _object(head)
        other = [name for name, digest in self.work.items() if digest is None or table.get("work", {}).get(name) != digest]
        if table.get("format") != FORMAT or other:
            self.word = f"{self.partial} was begun with another {' and '.join(other) or 'version'}: starting over"
            return
        before = _head(table)
        self._hash(before.size if before else 0)
        if before is None or self.digest.hexdigest() != before.sha256:
            self.digest = hashlib.sha256()
            self.word = f"{self.partial} is not what was written there: starting over"
            return
        self.head, self.noted = before, _notes(lines[:-1])
        self.word = f"{self.partial}: going on after line {before.lines + len(self.noted):,}"

    def _hash(self, size: int) -> None:
        self.answers.seek(0)
        while size and (data := self.answers.read(min(size, PIECE))):
            self.digest.update(data)
            size -= len(data)


def _line(place: int, written: Written) -> bytes:
    return json.dumps([place, *written]).encode() + b"\n"


def _notes(lines: list[bytes]) -> dict[int, Written]:
    """What the whole lines say, up to one that is torn."""
    found: dict[int, Written] = {}
    for line in lines:
        try:
            place, *written = json.loads(line)
        except ValueError:
            break
        found[place] = Written(*written)
    return found


def _head(table: Mapping[str, Any]) -> Head | None:
    """How far a journal says that the answers have come; None where it does not say."""
    try:
        found = Head(*(table["head"][name] for name in Head._fields))
    except (KeyError, TypeError):
        return None
    whole = [type(each) is type(usual) for each, usual in zip(found, Head(), strict=True)]
    return found if all(whole) and found.size >= 0 else None


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
