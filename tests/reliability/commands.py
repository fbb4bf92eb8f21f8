"""A process that has imported what commands need, and runs each in a copy of itself with a limit on its time, measuring its memory.

As tests/cli/ready.py, whose `become` it uses; but a copy is killed when its time is up, and its peak of memory is told.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from ready import ANSWERING, TRAINING, become

PROCESSOR, WALL = 5, 60
"""Seconds that a command may compute, and that it may take in all on a machine with other work to do."""


class Ended(NamedTuple):
    """How a command ended: its status, below 0 for a signal, the bytes it grew by, and what it wrote."""

    code: int
    grown: int
    out: str
    error: str


class Commands:
    """Asks that process; it starts with the first command."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(self, *arguments: object, folder: Path, given: Path | None = None, processor: int = PROCESSOR) -> Ended:
        """A command in a folder, with a file for its standard input."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen([sys.executable, __file__], text=True, **pipes)
        with tempfile.TemporaryDirectory() as room:
            streams = [str(given or "/dev/null"), f"{room}/out", f"{room}/error"]
            request = {"arguments": list(map(str, arguments)), "folder": str(folder), "surroundings": dict(os.environ)}
            self.process.stdin.write(json.dumps({**request, "streams": streams, "processor": processor}) + "\n")
            self.process.stdin.flush()
            code, grown = json.loads(self.process.stdout.readline())
            said = [Path(path).read_text(errors="replace") if os.path.exists(path) else "" for path in streams[1:]]
        return Ended(code, grown, *said)

    def close(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def serve() -> None:
    """Run one command after the other, until nobody asks any more."""
    for name in [*ANSWERING, *TRAINING]:
        import_module(name)
    import regard.inputs

    regard.inputs.WAIT = 0.2
    gc.collect()
    gc.freeze()
    while line := sys.stdin.readline():
        request = json.loads(line)
        processor = request.pop("processor")
        before = resident("VmRSS")
        child = os.fork()
        if child == 0:
            os.setsid()
            signal.alarm(WALL)
            resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            return become(**request)
        _, status, used = os.wait4(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024 - before]), flush=True)
    return None


def resident(name: str) -> int:
    """A line of this process's status, in bytes: VmRSS is what it has in memory, VmHWM the peak of that."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) << 10


if __name__ == "__main__":
    serve()
