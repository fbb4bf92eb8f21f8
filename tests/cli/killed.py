"""Answer a file in child processes and kill them at random instants: nothing here needs torch, and each attempt is a fork.

Called as python killed.py DIRECTORY KILLS SEED, it prints one JSON object.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from regard.cli._bad_inputs import BadInputs
from regard.cli._journal import Journal
from regard.cli._predict_io import AnswerWriter, write_to_file
from regard.cli._progress import ProgressLine
from regard.errors import DataError
from regard.inference.prediction import Prediction

LINES, WINDOW, BATCH = 300, 40, 7
WORK = {"input": "a", "model": "b", "settings": "c"}
MARKS = {13: "!", 49: "?"}


class Constraints(NamedTuple):
    """The fields of a ConstraintSpec, whose module imports torch; none of them is set."""

    prefix: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Model:
    """It turns texts round, shortest first, a few at a time; a score is of the whole batch, as padding has it.

    It knows nothing of a text with ?, has no finite scores of one with !, and cannot read one with *.
    """

    def __init__(self, batch: int = BATCH):
        self.batch = batch

    def fits(self, text):
        return self.is_known(text)

    def fit_all(self, texts):
        return [self.fits(text) for text in texts]

    def is_known(self, text):
        return "?" not in text

    def work(self, places):
        """Compute a batch."""

    def outcomes(self, texts, *, done, **options):
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for first in range(0, len(order), self.batch):
            places = order[first : first + self.batch]
            if done.issuperset(places):
                yield from ((place, []) for place in places)
                continue
            if any("*" in texts[place] for place in places):
                raise DataError("a text that cannot be read")
            self.work(places)
            whole = sum(len(texts[place]) * at for at, place in enumerate(places, 1)) / 7
            for place in places:
                score = -whole / len(texts[place])
                answer = Prediction(texts[place][::-1], score, [], [])
                yield place, DataError("no finite scores") if "!" in texts[place] else [answer]


class Slow(Model):
    """Each batch comes after a moment, and is counted."""

    def __init__(self, tally: Path, pause: float):
        super().__init__()
        self.tally, self.pause = tally, pause

    def work(self, places):
        time.sleep(self.pause)
        with self.tally.open("a") as file:
            file.write(f"{len(places)}\n")


def inputs():
    constraints = Constraints()
    return (
        (f"{'*' if number == 121 else MARKS.get(number % 50, '')}line {number} 猫{'x' * (number * 37 % 23)}", constraints)
        for number in range(LINES)
    )


def answer(out: Path, pause: float):
    with Journal(out, WORK) as journal, open(os.devnull, "w") as nowhere:
        progress = ProgressLine(LINES, journal.head.lines, stream=nowhere)
        model = Slow(out.with_suffix(".tally"), pause)
        return write_to_file(
            AnswerWriter(model, as_json=True, bad_inputs=BadInputs("lines")), inputs(), journal, WINDOW, progress
        )


def attempt(out: Path, pause: float) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.fsync = lambda handle: time.sleep(pause / 4)  # wider instants between a file and its journal
        answer(out, pause)
        code = 0
    finally:
        os._exit(code)


def main(directory: Path, kills: int, seed: int) -> None:
    chance, calm, wild = random.Random(seed), directory / "calm.txt", directory / "wild.txt"
    strange = answer(calm, 0.0)
    done, ended = 0, 0
    while True:
        child = attempt(wild, 0.002)
        if done < kills:
            time.sleep(chance.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        done += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            ended += 1
            same = wild.read_bytes() == calm.read_bytes()
            left = sorted(each.name for each in directory.glob("wild.txt.*"))
            if not same or left or done >= kills:
                break
            wild.unlink()
            wild.with_suffix(".tally").unlink()
    worked = sum(map(int, wild.with_suffix(".tally").read_text().split()))
    print(json.dumps({"same": same, "left": left, "kills": done, "ended": ended,
                      "strange": list(strange), "worked": worked}))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
