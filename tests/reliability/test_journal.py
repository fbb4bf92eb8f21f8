"""The journal of `regard predict --out`, damaged in every way: the answers are those of an undisturbed run, bit by bit.

A predict is stopped in the middle of its second window; its journal, or its partial file, is damaged; the same predict then
goes on. Each case has to end with the right answers, leave nothing beside them, and never make a file longer than these.
The model is one of a few lines whose scores depend on the batch, so that other batches would show.
"""

import itertools
import json
import os
import random
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from regard.cli._bad_inputs import BadInputs
from regard.cli._journal import Chain, Journal
from regard.cli._predict_io import AnswerWriter, write_to_file
from regard.cli._progress import ProgressLine

from ..cli.killed import WORK, Constraints, Model

LINES, WINDOW, BATCH = 11, 6, 2
DONE = WINDOW + 3
"""How many lines are answered when the predict is stopped."""
TEXTS = [f"{'?' * (n == 4)}{'!' * (n == 8)}{'*' * (n == 9)}{n} 猫{'x' * (n * 5 % 7)}" for n in range(LINES)]
Bytes = bytes


class Stopped(BaseException):
    """The process is killed."""


class Predict:
    """Predicts of one file in one folder, with a journal that is damaged between two of them."""

    def __init__(self, folder: Path):
        self.out, self.calm = folder / "out.txt", folder / "calm.txt"
        self.partial, self.path = folder / "out.txt.partial", folder / "out.txt.partial.journal"
        self.run(self.calm)
        self.right = self.calm.read_bytes()
        self.halfway, self.whole = self.stop(WORK)
        self.counts, self.faults, self.words = 0, list[str](), set[str]()

    def run(self, out: Path, notes: int | None = None, work: dict[str, str] = WORK) -> str:
        """Answer, or be stopped after so many lines; what was said of the journal."""
        constraints = Constraints()
        asking = AnswerWriter(Model(BATCH), as_json=True, bad_inputs=BadInputs("lines"))
        with Journal(out, work) as journal:
            size = os.path.getsize(journal.partial)
            assert size <= len(getattr(self, "right", b"")), f"{size:,} bytes"
            if notes is not None:
                self.limit(journal, notes)
            write_to_file(
                asking, ((text, constraints) for text in TEXTS), journal, WINDOW, ProgressLine(None, stream=StringIO())
            )
        return journal.message

    def limit(self, journal: Journal, notes: int) -> None:
        """Let a journal stop the process when it is to note one line more."""
        note, left = journal.note, itertools.count(notes, -1)

        def stopping(*given: object) -> None:
            if not next(left):
                raise Stopped
            note(*given)

        journal.note = stopping

    def stop(self, work: dict[str, str]) -> tuple[Bytes, Bytes]:
        """The partial file and the journal of a predict that is stopped halfway."""
        with pytest.raises(Stopped):
            self.run(self.out, DONE, work)
        return self.take()

    def take(self) -> tuple[Bytes, Bytes]:
        """Both files, which are gone then."""
        files = self.partial.read_bytes(), self.path.read_bytes()
        self.partial.unlink()
        self.path.unlink()
        return files

    def lines(self) -> list[Bytes]:
        """The lines of the whole journal."""
        return self.whole.splitlines(keepends=True)

    def case(self, name: str, journal: Bytes, partial: Bytes | None = None, warned: bool = False) -> None:
        """One damage, and what comes of it; `warned` where it needs to be announced."""
        self.counts += 1
        self.partial.write_bytes(self.halfway if partial is None else partial)
        self.path.write_bytes(journal)
        try:
            message = self.run(self.out)
            self.words.add(" ".join(message.rpartition("journal")[2].split()[:4]))
            if self.out.read_bytes() != self.right:
                self.faults.append(f"{name}: other answers")
            if self.partial.exists() or self.path.exists():
                self.faults.append(f"{name}: something is left")
            if warned and "damaged" not in message and "starting over" not in message:
                self.faults.append(f"{name}: {message!r} is no warning")
        except (Exception, Stopped) as error:
            self.faults.append(f"{name}: {type(error).__name__}: {error}")
            self.partial.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
        self.out.unlink(missing_ok=True)

    def ended(self, least: int) -> None:
        """No case fell, and there were enough of them."""
        assert self.faults[:3] == [], f"{len(self.faults)} of {self.counts}"
        assert self.counts >= least, f"{self.counts:,} cases"


@pytest.fixture
def predict(monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # that is for a failing power supply
    memory = Path("/dev/shm")  # where files are made and removed ten times as fast as on a disk
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Predict(Path(folder))


def flipped(data: Bytes, place: int, bit: int) -> Bytes:
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def sealed(head: object, *lines: object) -> Bytes:
    """A journal with right digests, whatever it says."""
    chain = Chain()
    return b"".join(chain.seal(json.dumps(each).encode()) for each in (head, *lines))


def odd(predict: Predict) -> Iterator[tuple[str, Bytes]]:
    """Journals with wrong sizes and strange values, sealed anew where that can be."""
    first, *rest = [json.loads(line.partition(b" ")[2]) for line in predict.lines()]
    for name, was in first["head"].items():
        for value in (-1, 0, 1, 7, 10**12, 2**63, 10**400, 1e300, True, None, "1", []):
            told = f'"{name}": {json.dumps(value)}'.encode()
            damaged = predict.whole.replace(f'"{name}": {json.dumps(was)}'.encode(), told)
            if damaged != predict.whole:
                yield f"head {name} {value!r:.20}", damaged
            if name == "size" and value != was:
                yield f"sealed size {value!r:.20}", sealed({**first, "head": {**first["head"], name: value}}, *rest)
    for head in (
        None,
        0,
        "",
        [],
        {},
        {"format": 2},
        {**first, "head": None},
        {**first, "work": None},
        {**first, "head": []},
    ):
        yield f"head {head!r:.20}", sealed(head, *rest)
    for line in (
        None,
        0,
        "",
        [],
        {},
        [0],
        [0, "x"],
        ["0", "x", False],
        [-1, "x", False],
        [0, 1, False],
        [0, "\ud800", False],
    ):
        yield f"line {line!r}", sealed(first, rest[0], line, *rest[1:])
    yield "a place beyond the window", sealed(first, *rest, [10**6, "x\n", False])
    yield "a place again", sealed(first, *rest, rest[0])
    chain = Chain()
    yield "deep JSON", chain.seal(b"[" * 10**5 + b"]" * 10**5)
    chain = Chain()
    yield "no JSON", predict.lines()[0] + Chain().seal(b"no JSON")
    for name, data in {
        "empty": b"",
        "a line feed": b"\n",
        "not UTF-8": b"\xff\xfe" * 100 + b"\n",
        "zeros": bytes(1000),
        "10 MB without an end": b"x" * 10**7,
        "a line of 10 MB": b"x" * 10**7 + b"\n",
        "10 MB of line feeds": b"\n" * 10**7,
        "JSON without digests": b'{"format": 1, "work": {}, "head": {}}\n',
        "deep JSON without a digest": b"[" * 10**5 + b"\n",
    }.items():
        yield name, data
        yield f"{name} behind the head", predict.lines()[0] + data
        yield f"{name} at the end", predict.whole + data


def rearranged(predict: Predict) -> Iterator[tuple[str, Bytes]]:
    """Lines that are repeated, left out, moved, or taken from the journal of other work."""
    lines = predict.lines()
    _, foreign = predict.stop({**WORK, "input": "other"})
    others = foreign.splitlines(keepends=True)
    for place in range(len(lines)):
        yield f"line {place} twice", b"".join([*lines[: place + 1], *lines[place:]])
        yield f"line {place} left out", b"".join([*lines[:place], *lines[place + 1 :]])
        yield f"line {place} of other work", b"".join([*lines[:place], others[place], *lines[place + 1 :]])
        yield f"line {place} put to the end", b"".join([*lines, lines[place]])
    for order in itertools.permutations(range(1, len(lines))):
        yield f"order {order}", lines[0] + b"".join(lines[place] for place in order)
    yield "of other work", foreign


soak = pytest.mark.soak, pytest.mark.timeout(900)


@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=soak)])
def test_no_flipped_bit_of_a_journal_changes_an_answer(predict, bits):
    last = len(predict.whole) - 1  # the end of the last line may be torn off by a kill, and needs no warning
    for place, bit in itertools.product(range(len(predict.whole)), range(bits)):
        damaged = flipped(predict.whole, place, (place + bit) % 8)
        predict.case(f"bit {(place + bit) % 8} of byte {place}", damaged, warned=place < last)
    predict.ended(400 * bits)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=soak)])
def test_wherever_a_journal_or_its_answers_end_the_rest_is_answered_again(predict, step):
    for size in range(0, len(predict.whole), step):
        predict.case(f"the first {size} bytes", predict.whole[:size])
    for size in range(0, len(predict.halfway), step):
        predict.case(f"the first {size} bytes of the answers", predict.whole, predict.halfway[:size], warned=True)
    predict.case("answers that go on", predict.whole, predict.halfway + b"half a li")
    predict.ended(800 // step)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=soak)])
def test_no_changed_byte_of_the_answers_is_kept(predict, step):
    for place in range(0, len(predict.halfway), step):
        damaged = flipped(predict.halfway, place, place % 8)
        predict.case(f"byte {place} of the answers", predict.whole, damaged, warned=True)
    predict.ended(300 // step)


def test_lines_of_a_journal_are_good_only_where_they_were_written(predict):
    for name, journal in list(rearranged(predict)):
        predict.case(name, journal)
    predict.ended(20)


def test_whatever_a_journal_says_no_file_grows_by_it(predict):
    for name, journal in odd(predict):
        predict.case(name, journal)
    predict.ended(60)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_damage_at_random_changes_an_answer(predict):
    chance = random.Random(0)
    for number in range(20_000):
        data = bytearray(predict.whole)
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(data) + 1)
            end = min(len(data), start + chance.randint(0, 40))
            data[start:end] = chance.choice(
                [b"", bytes(end - start), chance.randbytes(chance.randint(0, 40)), data[: end - start], data[start:end] * 2]
            )
        predict.case(f"damage {number}", bytes(data))
    predict.ended(20_000)
