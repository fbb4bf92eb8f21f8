"""A process that has imported what commands need, and runs each in a copy of itself: importing takes longer than most commands.

A copy has its own arguments, folder, surroundings and streams, and ends as `python -m regard` does; only what has been
imported tells it from one. Run as a program this file is that process: a request is a line of JSON, its answer the exit status.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ANSWERING = ["regard.cli", "regard.inference.sequence_predictor", "regard.inference.load", "regard.tasks._validate"]
TRAINING = ["torch._dynamo", "regard.inference.init_from", "regard.training.loop", "regard.metrics.text"]
HEAVY = {"torch._dynamo", "triton", "transformers", "matplotlib"}
STREAMS = [os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT]


class Ready:
    """Whoever asks the process; it starts with the first question."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.found: list[str] = []

    def run(
        self, arguments: list[str], given: str | None, *, stdout: str | None = None, before: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """The command's exit status and what it wrote.

        `stdout` is where its standard output goes instead; `before` is Python that the copy runs first, such as one that
        breaks what the command is about to use.
        """
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder) / name for name in ("in", "out", "error")]
            streams[0].write_text(given or "", encoding="utf-8")
            streams[1].touch()
            request = {"arguments": arguments, "folder": os.getcwd(), "surroundings": dict(os.environ), "before": before}
            code = self._ask({**request, "streams": [str(streams[0]), stdout or str(streams[1]), str(streams[2])]})
            said = [path.read_text(encoding="utf-8") for path in streams[1:]]
        return subprocess.CompletedProcess(arguments, code, *said)

    @property
    def heavy(self) -> list[str]:
        """Which of what answers do without is imported with what they need."""
        self._start()
        return self.found

    def _start(self) -> None:
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen([sys.executable, __file__], text=True, **pipes)
            self.found = json.loads(self.process.stdout.readline())

    def _ask(self, request: dict[str, object]) -> int:
        self._start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return int(self.process.stdout.readline())
        except BaseException:  # such as the test's time that is up: its answer would be taken for the next one's
            self.close()
            raise

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def serve() -> None:
    """Answer one request after the other, until nobody asks any more."""
    for name in ANSWERING:
        import_module(name)
    print(json.dumps(sorted(HEAVY & set(sys.modules))), flush=True)
    for name in TRAINING:
        import_module(name)
    gc.collect()
    gc.freeze()  # what is here stays: a copy that looked through it as it ends would take longer than its command
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            return become(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def become(arguments: list[str], folder: str, surroundings: dict[str, str], streams: list[str], before: str = "") -> None:
    """The command, in this process."""
    from regard.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(surroundings)
    for number, (path, how) in enumerate(zip(streams, STREAMS, strict=True)):
        os.dup2(os.open(path, how), number)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    sys.argv = ["regard", *arguments]
    exec(before, {})
    main()


if __name__ == "__main__":
    serve()
