"""Make the compiled code and load it: once for each machine, whatever the model.

The library lies in the user's cache folder (`user_cache.py`) and not in a run directory: it is the same for all models, and
opening a model that somebody sent never runs what came with it. It is loaded only where nobody but the user can have written
it.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from regard.user_cache import cache_folder, is_private

HERE = Path(__file__).parent
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC")
THREADS = ("-fopenmp",)
"""Left out where a compiler does not know it; one thread then does it all."""
TOLD = 400
"""How many characters of what a compiler says are passed on."""


class UnavailableError(RuntimeError):
    """Nothing could be compiled, or it does not run here."""


@cache
def library() -> ctypes.CDLL:
    """The compiled code, made where it is not there yet."""
    path = cache_folder("compiled") / f"{key()}.so"
    if not path.is_file() or not is_private(path):
        make(path)
    found = ctypes.CDLL(str(path))
    declare(found)
    return found


def sources() -> list[Path]:
    """The files that are compiled, and those that they include."""
    return sorted((*HERE.glob("*.cpp"), *HERE.glob("*.hpp")))


def key() -> str:
    """What it is made from and for: the sources, how they are compiled, and the processor."""
    digest = hashlib.sha256(" ".join((*FLAGS, *THREADS, processor())).encode())
    for source in sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:32]


def processor() -> str:
    """The processor and what it can do, where the system tells; code for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    told = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return " ".join((platform.machine(), *dict.fromkeys(told)))  # platform.processor() would start a program, uname


def make(path: Path) -> None:
    """Compile it, try it in a process of its own, which may die of it, and give it its name in one move."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), *COMPILERS))), None)
    if compiler is None:
        raise UnavailableError(
            f"there is no C++ compiler: neither CXX names one nor is there {', '.join(COMPILERS)}; install one, such as g++"
        )
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as room:
        made = Path(room) / path.name
        files = [str(each) for each in sources() if each.suffix == ".cpp"]
        for threads in (THREADS, ()):
            done = subprocess.run(
                [compiler, *FLAGS, *threads, *files, "-o", str(made)],
                capture_output=True,
                text=True,
                errors="replace",
                cwd=room,
            )
            if done.returncode == 0:
                break
        else:
            raise UnavailableError(f"{compiler} could not compile the engine: {done.stderr.strip()[:TOLD]}")
        trial = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).regard_trial())"
        isolated = [sys.executable, "-I", "-c", trial, str(made)]  # else a ctypes.py of the current folder is imported
        tried = subprocess.run(isolated, capture_output=True, text=True, errors="replace")
        if tried.returncode:
            raise UnavailableError(
                f"what {compiler} made of the engine does not run here (exit code {tried.returncode}): "
                f"{tried.stderr.strip()[-TOLD:] or 'its sums are wrong, or the processor does not know an instruction'}"
            )
        made.chmod(0o700)
        os.replace(made, path)


def declare(found: ctypes.CDLL) -> None:
    """What the functions take and give."""
    number, place, few, share = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int, ctypes.c_double
    takes: dict[str, list[type[Any]]] = {
        "transformer": [place, place, place, number, number],
        "recurrent": [place, place, place, number, number, place, place],
        "convolution": [place, place, place, number, number],
        "step": [place, place, place, number, place, few],
        "leave": [place, place, number],
        "end": [place],
        "greedy": [place, place, share, place, place, few],
        "beam": [place, place, number, share, place, place, few],
        "encode": [place, place, place, place, number, place, few],
        "read": [place, place, place, place, number, place, place, place, few],
        "product": [place, number, place, place, few, few],
    }
    gives = {"transformer": place, "recurrent": place, "convolution": place, "greedy": few, "beam": few}
    for name, arguments in takes.items():
        function = getattr(found, f"regard_{name}")
        function.argtypes, function.restype = arguments, gives.get(name)
