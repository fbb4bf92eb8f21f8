"""Kill commands at random instants and start them again until they are done: each must leave what an undisturbed one leaves.

Every task trains, a comparison trains with workers of its own, a model aligns. What they need is imported once, here, and each
attempt is a fork. Called as python kills.py DIRECTORY KILLS SEED [CASE...], where KILLS is how many each case gets, it prints one
JSON object.
"""

import array
import gc
import hashlib
import json
import math
import os
import random
import shutil
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from regard import registry
from regard.cli import main
from regard.compare.workers import WorkerPool
from regard.training import attention_metrics

SMALL = ["--model.hidden_size=8", "--data.samples=24", "--train.device=cpu"]
EVERY = 2
"""Steps between two checkpoints."""
STEPS = ["--train.max_steps=4", "--train.evaluate_every=2", f"--train.checkpoint_every={EVERY}", "--train.log_every=2"]
IMPORTED = [
    "torch._dynamo",
    "regard.inference.init_from",
    "regard.inference.load",
    "regard.tasks._validate",
    "regard.compare.sweep",
]
TIMES = {"seconds", "tokens_per_second", "waited", "check"}
"""Entries of JSON that depend on how long something took, and the digest of a manifest that holds such an entry."""
REPORTS = {"compare.md", "compare.html", ".lock"}
"""Files that hold times in running text (compare.json has the same figures), and the number of a process."""
Command = Callable[[Path], list[str]]


class Case(NamedTuple):
    """A command that is killed: its arguments for a directory, and what has to be there before it."""

    command: Command
    prepare: Callable[[Path], object] = lambda directory: None


def trained(task: str) -> Command:
    return lambda directory: ["train", task, *SMALL, *STEPS, "--quiet", "--out", str(directory / "run")]


def compared(directory: Path) -> list[str]:
    varied = ["--vary", "model.decoder=recurrent,convolution", "--jobs", "2", "--beam", "1", "--quiet"]
    return ["compare", "reverse", *varied, *SMALL, *STEPS, "--out", str(directory / "comparison")]


def aligned(directory: Path) -> list[str]:
    pairs, gold = directory / "pairs.tsv", directory / "gold.txt"
    chosen = [f"--data.test={pairs}", "--gold", str(gold), "--choose", "--by", "aer"]
    return ["align", str(directory / "run"), *chosen, "--out", str(directory / "links.txt"), "--device", "cpu"]


def aligned_model(directory: Path) -> None:
    """A model of the reversing task, with pairs and what people would link in them."""
    command = ["train", "reverse", *SMALL, "--train.max_steps=1", "--quiet", "--out", str(directory / "run")]
    assert ended(start(command)) == 0
    words = ["abc", "cab", "bca", "ab"]
    (directory / "pairs.tsv").write_text("".join(f"{' '.join(word)}\t{' '.join(word[::-1])}\n" for word in words))
    links = [" ".join(f"{place}-{len(word) - 1 - place}" for place in range(len(word))) for word in words]
    (directory / "gold.txt").write_text("\n".join(links) + "\n")


def cases() -> dict[str, Case]:
    """A case for every task there is, and for the commands that work through something and leave it behind."""
    tasks = {name: Case(trained(name)) for name in registry.names("tasks")}
    return {**tasks, "compare": Case(compared), "align": Case(aligned, aligned_model)}


def start(arguments: list[str], slow: float = 0.0) -> int:
    """Fork a command; its process number. `slow` holds every sync to disk for so long, which widens the instants between writes."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.fsync = lambda handle: time.sleep(slow)
        become(arguments)
    return child


def become(arguments: list[str]) -> None:
    """The command in this process, which ends with it."""
    code = 1
    try:
        sys.argv = ["regard", *arguments]
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    """The exit status of a command, waited for."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(directory: Path) -> dict[str, object]:
    """All that a command left, file by file, times aside. Beside --out a kill may leave a temporary file; elsewhere none.

    A worker of a comparison that is killed saves a checkpoint of the step that it has come to, beside those that are due.
    """
    beside = set(directory.glob(".tmp-*"))
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file() and path.name not in REPORTS]
    paths = [path for path in paths if path not in beside and not is_early(path.parent)]
    return {str(path.relative_to(directory)): content(path) for path in paths}


def is_early(checkpoint: Path) -> bool:
    """Whether this is a checkpoint that was saved because a signal stopped the training."""
    return checkpoint.parent.name == "checkpoints" and checkpoint.name.isdigit() and int(checkpoint.name) % EVERY != 0


def content(path: Path) -> object:
    data = path.read_bytes()
    if path.suffix == ".json":
        return timeless(json.loads(data))
    if path.suffix == ".jsonl":
        return [timeless(json.loads(line)) for line in data.splitlines()]
    return hashlib.sha256(data).hexdigest()


def timeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items() if name not in TIMES}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def differences(left: dict[str, object], right: dict[str, object]) -> list[str]:
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def victim(child: int, workers: Path, chance: random.Random) -> int:
    """The command itself or, of a comparison, as often one of its workers."""
    at_work = [int(path.name) for path in workers.iterdir()]
    return chance.choice(at_work) if at_work and chance.random() < 0.5 else child


def kill(child: int, directory: Path, workers: Path, after: float, chance: random.Random) -> int | None:
    """Kill a command after so many seconds, every third time inside a write; None, or its exit status if it was done before."""
    until, aim = time.monotonic() + after, chance.random() < 0.34
    limit = until + 0.2
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        now = time.monotonic()
        if now > until and (not aim or now > limit or any(directory.rglob(".tmp-*"))):
            break
        time.sleep(0.0005)
    target = victim(child, workers, chance)
    try:
        os.kill(target, signal.SIGKILL)
    except ProcessLookupError:  # a worker that was done just now
        os.kill(child, signal.SIGKILL)
        target = child
    code = ended(child)
    return None if target != child or code == -signal.SIGKILL else code


def disturbed(case: Case, base: Path, kills: int, chance: random.Random) -> dict[str, object]:
    """Kill a command so many times, each time starting it again, then let it end; how many came out as if undisturbed."""
    run, workers = base / "run", base.parent / "workers"
    run.mkdir(parents=True)
    case.prepare(run)
    begun = time.monotonic()
    code = ended(start(case.command(run)))
    length, wanted = time.monotonic() - begun, outcome(run)
    counts = {
        "kills": 0,
        "inside": 0,
        "runs": 0,
        "equal": 0,
        "differ": [] if code == 0 else [f"undisturbed: exit status {code}"],
    }
    while not counts["differ"] and (counts["kills"] < kills or counts["runs"] == 0):
        shutil.rmtree(run)
        run.mkdir()
        case.prepare(run)
        while True:
            child = start(case.command(run), chance.choice([0.0, 0.001]))
            if counts["kills"] < kills:
                code = kill(child, base, workers, chance.uniform(0.0, 0.5 * length), chance)
                counts["kills"] += code is None
                counts["inside"] += code is None and any(run.rglob(".tmp-*"))
            else:
                code = ended(child)
            if code is not None:
                break
        differ = differences(wanted, outcome(run)) if code == 0 else [f"exit status {code}"]
        counts["runs"] += 1
        counts["equal"] += not differ
        counts["differ"] += differ
    return counts


class Worker:
    """A worker of a comparison, forked by the nursery; it looks to its comparison as subprocess.Popen does."""

    def __init__(self, address: str):
        (reads, self_writes), (self_reads, writes) = os.pipe(), os.pipe()
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(address)
        socket.send_fds(self.link, [b"."], [reads, writes])
        os.close(reads)
        os.close(writes)
        self.stdin = os.fdopen(self_writes, "w", encoding="utf-8")
        self.stderr = os.fdopen(self_reads, encoding="utf-8", errors="replace")
        (self.pid,) = array.array("i", self.link.recv(4))

    def wait(self) -> int:
        (code,) = array.array("i", self.link.recv(4, socket.MSG_WAITALL) or array.array("i", [-9]).tobytes())
        self.link.close()
        return code

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


def nursery(address: str, workers: Path) -> None:
    """Fork workers for whoever connects, each under a watcher that tells how it ended. Ends when the harness has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    door = socket.socket(socket.AF_UNIX)
    door.bind(address)
    door.listen()
    door.settimeout(0.5)
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            link, _ = door.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            door.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            watch(link, workers)
        link.close()
    os._exit(0)


def watch(link: socket.socket, workers: Path) -> None:
    _, (reads, writes), _, _ = socket.recv_fds(link, 1, 2)
    child = os.fork()
    if child == 0:
        link.close()
        os.setsid()
        for number, handle in ((0, reads), (2, writes)):
            os.dup2(handle, number)
        os.close(reads)
        os.close(writes)
        sys.stdin, sys.stderr = os.fdopen(0, encoding="utf-8", closefd=False), os.fdopen(2, "w", 1, closefd=False)
        become(["compare-one"])
    os.close(reads)
    os.close(writes)
    note = workers / str(child)
    note.touch()
    code = 1
    try:
        link.send(array.array("i", [child]).tobytes())
        code = ended(child)
        note.unlink()
        link.send(array.array("i", [code]).tobytes())
    finally:  # the comparison may have been killed
        note.unlink(missing_ok=True)
        os._exit(0)


def warm(base: Path) -> None:
    """Import what is imported late, by what every command does first."""
    for name in IMPORTED:
        import_module(name)
    from regard.api import build_experiment, read_config
    from regard.training.loop import train

    overrides = [option.removeprefix("--") for option in (*SMALL, "--train.max_steps=1")]
    for task in registry.names("tasks"):
        config = read_config(task, overrides=overrides)
        import_module(config.__class__.__mro__[1].__module__)
    config = read_config("reverse", overrides=overrides)
    train(build_experiment("reverse", config)[0], base / "warm", quiet=True)


def serve(base: Path, kills: int, seed: int, chosen: list[str]) -> dict[str, dict[str, object]]:
    assert (
        os.environ["OMP_NUM_THREADS"] == "1"
    )  # torch.set_num_threads would touch a pool that copies of a process fight for
    warnings.simplefilter("error")
    os.environ["PYTHONWARNINGS"] = "error"
    attention_metrics.SHARE = math.inf  # attentions are looked at for every line of the log, and not as time allows
    workers, address = base / "workers", str(base / "nursery")
    workers.mkdir()
    warm(base)
    gc.collect()
    gc.freeze()  # what is here stays: a copy that looked through it as it ends would take longer than its command
    if os.fork() == 0:
        nursery(address, workers)
    WorkerPool.start = lambda crew: register(crew, Worker(address))
    while not os.path.exists(address):
        time.sleep(0.01)
    found = {}
    for number, (name, case) in enumerate(cases().items()):
        if not chosen or name in chosen:
            found[name] = disturbed(case, base / name, kills, random.Random(1000 * seed + number))
            shutil.rmtree(base / name)
    return found


def register(crew: WorkerPool, worker: Worker) -> Worker:
    crew.running.add(worker)
    return worker


if __name__ == "__main__":
    print(json.dumps(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])))
