"""Build and load the C++ engine: once for each machine, whatever the model.

The library lies in the user's cache folder (`user_cache.py`) and not in a run directory: it is the same for all models, and
opening a model that somebody sent never runs what came with it. It is loaded only where nobody but the user can have written
it, and where the SHA-256 behind its last byte is that of its content: a library that was cut off kills the process.
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
"""OpenMP flag, left out where a compiler does not know it; the engine then uses one thread."""
MESSAGE_LENGTH = 400
"""Maximum number of characters of compiler output in an error."""
DIGEST = hashlib.sha256().digest_size
UNKNOWN_FAILURE = "its sums are wrong, or the processor does not know an instruction"
"""Reason for a trial that failed without a message."""


class UnavailableError(RuntimeError):
    """Error: the C++ engine could not be compiled, or does not run here."""


@cache
def load_library() -> ctypes.CDLL:
    """Load the shared library; compiles it where it is missing, damaged or not private to the user."""
    path = cache_folder("compiled") / f"{compute_cache_key()}.so"
    if not path.is_file() or not is_private(path) or not is_whole(path):
        compile_library(path)
    library = ctypes.CDLL(str(path))
    declare_functions(library)
    return library


def is_whole(path: Path) -> bool:
    """Return True if the library ends with the SHA-256 of what stands before it."""
    data = path.read_bytes()
    return hashlib.sha256(data[:-DIGEST]).digest() == data[-DIGEST:]


def seal(path: Path) -> None:
    """Append the SHA-256 of the library to it, which the loader of the system does not read."""
    data = path.read_bytes()
    path.write_bytes(data + hashlib.sha256(data).digest())


def list_sources() -> list[Path]:
    """Source files and headers."""
    return sorted((*HERE.glob("*.cpp"), *HERE.glob("*.hpp")))


def compute_cache_key() -> str:
    """Cache key: digest of the sources, the flags and the processor."""
    digest = hashlib.sha256(" ".join((*FLAGS, *THREADS, describe_processor())).encode())
    for source in list_sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:32]


def describe_processor() -> str:
    """Processor and its features, where the system tells; code for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    features = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return " ".join((platform.machine(), *dict.fromkeys(features)))  # platform.processor() would start a program, uname


def compile_library(path: Path) -> None:
    """Compile the library, test it in a process of its own, which may crash, and move it into place atomically."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), *COMPILERS))), None)
    if compiler is None:
        raise UnavailableError(
            f"there is no C++ compiler: neither CXX names one nor is there {', '.join(COMPILERS)}; install one, such as g++"
        )
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as room:
        library = Path(room) / path.name
        files = [str(source) for source in list_sources() if source.suffix == ".cpp"]
        for threads in (THREADS, ()):
            done = subprocess.run(
                [compiler, *FLAGS, *threads, *files, "-o", str(library)],
                capture_output=True,
                text=True,
                errors="replace",
                cwd=room,
            )
            if done.returncode == 0:
                break
        else:
            raise UnavailableError(f"{compiler} could not compile the engine: {done.stderr.strip()[:MESSAGE_LENGTH]}")
        trial = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).regard_trial())"
        isolated = [sys.executable, "-I", "-c", trial, str(library)]  # else a ctypes.py of the current folder is imported
        trial_run = subprocess.run(isolated, capture_output=True, text=True, errors="replace")
        if trial_run.returncode:
            raise UnavailableError(
                f"what {compiler} made of the engine does not run here (exit code {trial_run.returncode}): "
                f"{trial_run.stderr.strip()[-MESSAGE_LENGTH:] or UNKNOWN_FAILURE}"
            )
        seal(library)
        library.chmod(0o700)
        os.replace(library, path)


def declare_functions(library: ctypes.CDLL) -> None:
    """Declare the argument and result types of the library's functions."""
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
        function = getattr(library, f"regard_{name}")
        function.argtypes, function.restype = arguments, gives.get(name)
