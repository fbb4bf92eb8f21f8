"""Directories that do leak, because the change itself makes the program do what it must not: the gate has to catch each."""

import ctypes
import os
import pickle
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from hostile_cases import Case

import regard.inference.load


class Harmless:
    """Unpickled, it imports a function."""

    def __reduce__(self):
        return str.upper, ("leak",)


def leaking(leak):
    """A change that leaves the directory as it is, and makes opening it do something."""

    def change(directory: Path, outside: Path) -> None:
        before = regard.inference.load.load
        (directory / "leak.py").write_text("leaked = 1\n")

        def opened(*given, **options):
            leak(Path(directory), outside)
            return before(*given, **options)

        regard.inference.load.load = opened

    return change


def connect(*_) -> None:
    with socket.socket() as made:
        made.settimeout(0.1)
        made.connect_ex(("127.0.0.1", 9))


def planted_library(directory: Path, _: Path) -> None:
    (directory / "leak.so").write_bytes(b"\x7fELF") if not (directory / "leak.so").exists() else None
    with suppress(OSError):
        ctypes.CDLL(str(directory / "leak.so"))


def native_open(_: Path, outside: Path) -> None:
    """As a library opens a file: Python hears nothing of it."""
    libc = ctypes.CDLL(None)
    os.close(libc.open(os.fsencode(outside / "secret"), os.O_RDONLY))


LEAKS = {
    "pickle.find_class": lambda *_: pickle.loads(pickle.dumps(Harmless())),
    "exec": lambda directory, _: exec(compile((directory / "leak.py").read_text(), str(directory / "leak.py"), "exec"), {}),
    "subprocess.Popen": lambda *_: subprocess.run(["true"]),
    "os.system": lambda *_: os.system("true"),
    "socket.connect": connect,
    "ctypes.dlopen": planted_library,
    "open": lambda *_: open("/etc/hostname").close(),
    "outside was touched": native_open,
}
CASES = [Case(event, "rnn", leaking(leak)) for event, leak in LEAKS.items()]
