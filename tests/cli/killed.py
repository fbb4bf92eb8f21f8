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
from types import SimpleNamespace

from regard.cli.answering import Asking, to_file
from regard.cli.journal import Journal
from regard.cli.pace import Pace

LINES, WINDOW, BATCH = 300, 40, 7
WORK = {"input": "a", "model": "b", "settings": "c"}


class Slow:
    """A model that turns texts round, shortest first, a few at a time and each batch after a moment; it counts its work."""

    def __init__(self, tally: Path, pause: float):
        self.tally, self.pause = tally, pause

    def reads(self, text):
        return "?" not in text

    def each(self, texts, **options):
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for first in range(0, len(order), BATCH):
            time.sleep(self.pause)
            with self.tally.open("a") as file:
                file.write(f"{len(order[first : first + BATCH])}\n")
            for place in order[first : first + BATCH]:
                answer = SimpleNamespace(text=texts[place][::-1], score=0.0, weights=None, links=None)
                yield place, [answer]


def inputs():
    wish = SimpleNamespace(prefix="", include=(), exclude=())
    return (
        (f"{'?' if number % 50 == 49 else ''}line {number} 猫{'x' * (number * 37 % 23)}", wish) for number in range(LINES)
    )


def answer(out: Path, pause: float):
    with Journal(out, WORK) as journal, open(os.devnull, "w") as nowhere:
        pace = Pace(LINES, journal.head.lines, stream=nowhere)
        return to_file(Asking(Slow(out.with_suffix(".tally"), pause)), inputs(), journal, WINDOW, pace)


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
