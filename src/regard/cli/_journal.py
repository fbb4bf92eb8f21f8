"""A journal of answers to a long file, so that a process that is killed at any instant repeats and loses no line.

OUT.partial             answers to all finished windows, in order
OUT.partial.journal     its head: what is answered, by which model, how; how many lines and bytes of OUT.partial count; then
                        a line for each answer of the current window, in the order in which they were computed

A head is written anew, all at once, when a window has been put behind the others. What OUT.partial has beyond its bytes, and
what follows a torn line of the journal, was being written when the process died.

Each line of the journal begins with a digest of itself and of all lines before it (a chain of truncated SHA-256), so that a
line that was changed, moved, repeated or taken from another journal is found. Reading ends there, and what follows is
computed again. The head holds the SHA-256 of the bytes of OUT.partial that count.
"""

import errno
import fcntl
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from regard import io as atomic
from regard.errors import DataError, FailedError, RefusedError

FORMAT = 2
PIECE = 1 << 20
DIGEST = 16
"""Hexadecimal digits of a line's digest."""
LONGEST = 1 << 26
"""The most bytes of a line of the journal: more are not read."""


class WrittenAnswer(NamedTuple):
    """The text written for an input, and whether the model has no answer to it."""

    text: str
    strange: bool = False


class Head(NamedTuple):
    """Progress of the answers."""

    lines: int = 0
    size: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    strange: int = 0
    first: int = 0
    """The first line, from 1, to which the model has no answer."""


class Journal:
    """Crash-safe writer of answers to `out`, used inside `with`. `work` identifies the input, the model and the settings.

    A journal of the same work beside `out` is resumed, and `message` says so, as it does for one that cannot be resumed, or
    only in part. Work of which some part is None, such as lines from a pipe, is never resumed.
    """

    def __init__(self, out: Path, work: Mapping[str, str | None]):
        self.out, self.work = out, dict(work)
        self.partial, self.path = (out.with_name(f"{out.name}.partial{end}") for end in ("", ".journal"))
        self.head, self.answers_of_window, self.message = Head(), dict[int, WrittenAnswer](), ""
        self.lines: io.FileIO | None = None

    def __enter__(self) -> "Journal":
        if self.out.exists() and not self.out.is_file():
            raise DataError(f"--out needs the name of a file, and {self.out} is something else; choose another")
        try:
            if self.out.exists():  # it will be replaced, which a folder allows where the file is read-only
                os.close(os.open(self.out, os.O_WRONLY))
        except OSError as error:
            raise DataError(f"--out cannot write {self.out}: {error.strerror}; choose another place") from error
        self.answers = self._lock()
        try:
            with self._report_errors(self.path):
                self._resume()
            with self._report_errors(self.partial):
                self.answers.truncate(self.head.size)  # what is there is at least as long
            self._begin()
        except BaseException:
            self._close(nothing=not os.fstat(self.answers.fileno()).st_size and not self.path.exists())
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close(nothing=kind is not None and not self.head.lines and not self.answers_of_window)

    def note(self, place: int, written: WrittenAnswer) -> None:
        """Record the answer to an input of the current window, counted from 0."""
        line = self.chain.seal(_payload(place, written))
        with self._report_errors(self.path):
            assert self.lines is not None, "a journal is used inside `with`"
            _write_all(self.lines, line)
        self.answers_of_window[place] = written

    def commit_window(self) -> None:
        """Append the current window, all of which is answered, to the partial file."""
        answers = [self.answers_of_window[place] for place in range(len(self.answers_of_window))]
        data = "".join(one.text for one in answers).encode()
        strange = [place for place, one in enumerate(answers, self.head.lines + 1) if one.strange]
        with self._report_errors(self.partial):
            _write_all(self.answers, data)
            os.fsync(self.answers.fileno())
        self.digest.update(data)
        before = self.head
        self.head = Head(
            before.lines + len(answers),
            before.size + len(data),
            self.digest.hexdigest(),
            before.strange + len(strange),
            before.first or (strange[0] if strange else 0),
        )
        self.answers_of_window = {}
        self._begin()

    def finish(self) -> None:
        """Rename the partial file to its final name."""
        with self._report_errors(self.out):
            os.replace(self.partial, self.out)
            self.path.unlink()
            atomic.flush(self.out.absolute().parent)

    def _lock(self) -> io.FileIO:
        """The partial file, which nobody else writes; opened anew where somebody has just finished with it."""
        while True:
            try:
                file = _open(self.partial, os.O_RDWR | os.O_APPEND | os.O_CREAT, "a+b")
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
        if self.lines is not None:
            self.lines.close()
        self.chain = Chain()
        head = json.dumps({"format": FORMAT, "work": self.work, "head": self.head._asdict()}).encode()
        lines = [self.chain.seal(entry) for entry in (head, *(_payload(*item) for item in self.answers_of_window.items()))]
        with self._report_errors(self.path):
            atomic.write(self.path.absolute(), b"".join(lines))
            self.lines = _open(self.path, os.O_WRONLY | os.O_APPEND, "ab")

    def _close(self, nothing: bool) -> None:
        """Close both files, and remove them where there is nothing to go on with."""
        if self.lines is not None:
            self.lines.close()
        if nothing:  # while the lock is held
            self.partial.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
        self.answers.close()

    def _resume(self) -> None:
        """Resume a journal of the same work; otherwise set the message with the reason."""
        self.digest = hashlib.sha256()
        try:
            stream: BinaryIO = io.BufferedReader(_open(self.path, os.O_RDONLY, "rb"))
        except FileNotFoundError:
            return
        with stream:
            payloads = _unseal(stream)
            table = next(payloads, None)
            if not isinstance(table, dict):
                stream.seek(0)
                older = _older(stream)
                self.message = f"{self.partial} was begun with another version: starting over" if older else self._damaged(1)
                return
            self._restore(table, payloads)

    def _restore(self, table: dict[str, Any], payloads: Iterator[Any]) -> None:
        """The head of a journal, and those of its lines that are whole."""
        work: dict[str, Any] = table["work"] if isinstance(table.get("work"), dict) else {}
        other = [name for name, digest in self.work.items() if digest is None or work.get(name) != digest]
        if table.get("format") != FORMAT or other:
            self.message = f"{self.partial} was begun with another {' and '.join(other) or 'version'}: starting over"
            return
        before = _head(table)
        if before is None or not self._matches(before):
            self.digest = hashlib.sha256()
            self.message = f"{self.partial} is not what was written there: starting over"
            return
        self.head, number = before, 1
        for number, payload in enumerate(payloads, 2):
            line = _line(payload)
            if line is None or line[0] in self.answers_of_window:
                self.message = self._damaged(number)
                return
            self.answers_of_window[line[0]] = line[1]
        self.message = f"{self.partial}: going on after line {before.lines + len(self.answers_of_window):,}"

    def _damaged(self, number: int) -> str:
        """The warning of a journal whose line of this number, counted from 1, is not what was written."""
        whole = self.head.lines + len(self.answers_of_window)
        start = f"going on after line {whole:,}, and answering again what follows" if whole else "starting over"
        return f"{self.path} is damaged in its line {number:,}: {start}"

    def _matches(self, head: Head) -> bool:
        """Return True if the partial file begins with the bytes that a head counts; its digest is then that of these."""
        size = head.size
        if os.fstat(self.answers.fileno()).st_size < size:
            return False
        self.answers.seek(0)
        while size and (data := self.answers.read(min(size, PIECE))):
            self.digest.update(data)
            size -= len(data)
        return self.digest.hexdigest() == head.sha256

    @contextmanager
    def _report_errors(self, path: Path) -> Iterator[None]:
        """Turn errors of reading or writing a file into one paragraph."""
        try:
            yield
        except (OSError, FailedError) as error:
            cause = error.__cause__ if isinstance(error, FailedError) else error
            why = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error)
            raise DataError(
                f"--out cannot write {path}: {why}. The answers until then are in {self.partial}, with a journal beside it: "
                "make room, or choose another place, and give the same command again, which resumes from there"
            ) from error


class Chain:
    """Digests of lines, each of a line and of the digest before it."""

    def __init__(self) -> None:
        self.last = b""

    def digest(self, payload: bytes) -> bytes:
        """The digest that the next line has to begin with."""
        return hashlib.sha256(self.last + payload).hexdigest()[:DIGEST].encode()

    def seal(self, payload: bytes) -> bytes:
        """The next line, with its digest and its end."""
        self.last = self.digest(payload)
        return self.last + b" " + payload + b"\n"


def _unseal(stream: BinaryIO) -> Iterator[Any]:
    """The values of a journal's lines, up to one that is torn; None, as the last, for one that is not what was written."""
    chain = Chain()
    while (line := stream.readline(LONGEST)).endswith(b"\n"):
        payload = line[DIGEST + 1 : -1]
        value = _value(payload) if chain.seal(payload) == line else None
        yield value
        if value is None:
            return
    if len(line) == LONGEST:
        yield None


def _older(stream: BinaryIO) -> bool:
    """Return True for a journal of format 1, whose lines are JSON without digests."""
    table = _value(stream.readline(PIECE))
    return isinstance(table, dict) and "format" in table


def _value(payload: bytes) -> Any:
    """The value of a JSON text; None for anything else."""
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None


def _payload(place: int, written: WrittenAnswer) -> bytes:
    return json.dumps([place, *written]).encode()


def _line(payload: Any) -> tuple[int, WrittenAnswer] | None:
    """The place of an input and what is written for it; None for anything else."""
    if not isinstance(payload, list) or [type(value) for value in payload] != [int, str, bool] or payload[0] < 0:
        return None
    try:
        payload[1].encode()
    except UnicodeEncodeError:  # JSON can spell half of a surrogate pair
        return None
    return payload[0], WrittenAnswer(*payload[1:])


def _head(table: Mapping[str, Any]) -> Head | None:
    """Head of a journal: the progress of the answers; None where it has none."""
    try:
        head = Head(*(table["head"][name] for name in Head._fields))
    except (KeyError, TypeError):
        return None
    whole = [type(value) is type(usual) for value, usual in zip(head, Head(), strict=True)]
    return head if all(whole) and min(head.lines, head.size) >= 0 else None


def _open(path: Path, flags: int, mode: str) -> io.FileIO:
    """A regular file, without a buffer: neither what a link leads to, nor a device, nor a pipe that nobody writes to."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return io.FileIO(handle, mode)


def _write_all(file: io.FileIO, data: bytes) -> None:
    """Write to a file without a buffer, which may take less than it is given."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]
