"""Run trainings in child processes and kill them: torch is imported once, here, and each attempt is a fork.

Called as python faults.py DIRECTORY KILLS SIGNALS SEED, it prints one JSON object.
"""

import json
import math
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
import small

from regard.training import attention_metrics
from regard.training.loop import train

KINDS = {
    "adam, moving average, plateau": {"ema_decay": 0.9, "schedule": "plateau", "accumulate_steps": 2},
    "adamw, average of checkpoints": {
        "optimizer": "adamw",
        "weight_decay": 0.1,
        "average_checkpoints": 3,
        "schedule": "noam",
        "warmup_steps": 9,
    },
    "bf16, cosine": {"precision": "bf16", "schedule": "cosine", "gradient_clip": 0.5},
    "sgd, early stopping": {"optimizer": "sgd", "patience": 50, "label_smoothing": 0.1},
}
STEPS = 24


def settings(kind: str) -> dict:
    return {"max_steps": STEPS, "checkpoint_every": 4, "evaluate_every": 6, "log_every": 3, **KINDS[kind]}


def start(directory: Path, kind: str, slow: float = 0.0) -> int:
    """Fork a training; its process number. `slow` holds every write for so long, which widens the instants inside it.

    Nothing is synced to the disk: that is for a failing power supply, and a kill cannot tell the difference.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.fsync = lambda handle: time.sleep(slow)
        train(small.experiment(**settings(kind)), directory, quiet=True)
        code = 0
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finished(child: int) -> int | None:
    """The exit code of a child, or None while it runs."""
    done, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def half_written(directory: Path) -> bool:
    return any(directory.glob("checkpoints/.tmp-*"))


def disturb(child: int, directory: Path, chance: random.Random, aim: bool) -> int | None:
    """Kill a child at a random instant or, aiming, once it writes a checkpoint; its exit code if it was done before."""
    until = time.monotonic() + chance.uniform(0.0, 0.5)
    while (code := finished(child)) is None:
        if time.monotonic() > until and (not aim or half_written(directory)):
            time.sleep(chance.uniform(0.0, 0.004) if aim else 0.0)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            return None if code == -signal.SIGKILL else code
        time.sleep(0.0005)
    return code


def undisturbed(directory: Path, kind: str) -> dict:
    os.waitpid(start(directory, kind), 0)
    return left(directory)


def left(directory: Path) -> dict:
    """What a training leaves: the bits of its tensors, and all that it says of itself."""
    return small.fingerprint(directory) | small.account(directory)


def signalled(base: Path, wanted: dict, count: int, chance: random.Random) -> dict:
    """Ask trainings to stop, by SIGTERM and SIGINT in turn, until each is done; how they took it."""
    counts = {"signals": 0, "codes": 0, "saved": 0, "slowest": 0.0, "runs": 0, "equal": 0}
    kinds = list(KINDS)
    while counts["signals"] < count:
        kind = kinds[counts["runs"] % len(kinds)]
        directory = base / "signalled"
        shutil.rmtree(directory, ignore_errors=True)
        code = 1
        while code:
            number = (signal.SIGTERM, signal.SIGINT)[counts["signals"] % 2]
            child = start(directory, kind)
            begun, code = ask(child, directory, number, chance.uniform(0.0, 0.1))
            if code:
                counts["slowest"] = max(counts["slowest"], time.monotonic() - begun)
                counts["signals"] += 1
                counts["codes"] += code == 128 + number
                counts["saved"] += bool(list(directory.glob("checkpoints/[0-9]*"))) and not half_written(directory)
        counts["runs"] += 1
        counts["equal"] += left(directory) == wanted[kind]
    return counts


def ask(child: int, directory: Path, number: int, after: float) -> tuple[float, int]:
    """Send a signal to a child some time after it holds its directory; when that was, and its exit code."""
    while not held(directory, child) and (code := finished(child)) is None:
        time.sleep(0.001)
    time.sleep(0.05 + after)
    begun = time.monotonic()
    if (code := finished(child)) is None:
        os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return begun, code


def held(directory: Path, child: int) -> bool:
    lock = directory / ".lock"
    return lock.exists() and lock.read_text().strip() == str(child)


def killed(base: Path, wanted: dict, kills: int, chance: random.Random) -> dict:
    """Kill trainings, each until it is done; how many came out as if nothing had happened."""
    counts = {"kills": 0, "inside": 0, "runs": 0, "equal": 0, "failed": 0, "differ": []}
    while counts["kills"] < kills:
        kind = chance.choice(list(KINDS))
        directory = base / "run"
        shutil.rmtree(directory, ignore_errors=True)
        code = None
        while code is None:
            aim = chance.random() < 0.4 and counts["kills"] < kills
            child = start(directory, kind, 0.002 if aim else 0.0)
            if counts["kills"] < kills:
                code = disturb(child, directory, chance, aim)
                counts["kills"] += code is None
                counts["inside"] += code is None and half_written(directory)
            else:
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        counts["runs"] += 1
        counts["failed"] += code != 0
        found = left(directory) if code == 0 else {}
        counts["equal"] += found == wanted[kind]
        counts["differ"] += [f"{kind}: {name}" for name in wanted[kind] if found.get(name) != wanted[kind][name]]
    return counts


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    attention_metrics.SHARE = math.inf  # attentions are looked at for every line of the log, and not as time allows
    train(small.experiment(max_steps=1), Path(sys.argv[1]) / "warm", quiet=True)  # imports what is imported late
    base, kills, signals, seed = Path(sys.argv[1]), *map(int, sys.argv[2:])
    whole = {kind: undisturbed(base / f"whole-{number}", kind) for number, kind in enumerate(KINDS)}
    result = {
        "killed": killed(base, whole, kills, random.Random(seed)),
        "signalled": signalled(base, whole, signals, random.Random(seed)),
    }
    print(json.dumps(result))
