"""What a program may not do while it opens what somebody sent, noted by an audit hook and by a watch on a folder."""

import ctypes
import os
import select
import shutil
import sys
import sysconfig
import traceback
from pathlib import Path

import regard

PACKAGES = [
    sysconfig.get_path("stdlib"),
    sys.prefix,
    sys.base_prefix,
    Path(regard.__file__).parent,
    Path(__file__).resolve().parent,
]
GENERATING = ("dataclasses.py", "collections/__init__.py", "functools.py", "inspect.py", "jaxtyping/_decorator.py")
"""Files of the standard library and of packages that execute code which they have put together themselves."""
COMMANDS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn", "webbrowser.open")
SOCKETS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg")
CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate")
READABLE = ("/proc", "/sys", "/dev/null", "/dev/urandom", "/dev/shm")


class Audit:
    """Notes what nothing may do while a hostile directory is opened. It cannot be taken away: it lives in a fork."""

    def __init__(self, model: Path, room: Path, outside: Path):
        self.events: list[str] = []
        self.busy = True
        self.writes_model = self.compiles = False
        """Whether the question may write to the model directory, and start the compiler of our own sources."""
        self.model = model
        self.own = [room / "tmp", room / "cache", model.parent / "out"]
        self.outside = outside
        self.packages = sorted({os.path.realpath(each) for each in PACKAGES})
        self.compilers = {shutil.which(name) for name in ("c++", "g++", "clang++")} - {None}
        sys.addaudithook(self)

    def __call__(self, event: str, given: tuple) -> None:
        if self.busy:
            return
        self.busy = True
        try:
            if (told := self.objection(event, given)) is not None:
                where = [f"{each.filename}:{each.lineno}" for each in traceback.extract_stack(limit=12)[:-1]]
                self.events.append(f"{event}: {told} from {' '.join(where[-6:])}")
        finally:
            self.busy = False

    def objection(self, event: str, given: tuple) -> str | None:
        """What is wrong with an event; None where nothing is."""
        if event == "pickle.find_class":
            return f"{given[0]}.{given[1]}"
        if event == "exec":
            return self.foreign_code(given[0])
        if event in ("marshal.loads", "marshal.load"):
            return None if "importlib" in caller() else f"by {caller()}"
        if event == "import":
            return None if given[1] is None or self.installed(given[1]) else str(given[1])
        if event == "ctypes.dlopen":
            return self.foreign_library(given[0])
        if event == "subprocess.Popen":
            return None if self.compiles and self.compiler(*given) else f"{given[0]!r} {given[1]!r}"
        if event in COMMANDS or event in SOCKETS:
            return repr(given)[:200]
        if event == "open":
            return self.strange_open(*given)
        if event in CHANGES:
            return next((path for path in changed(event, given) if not self.writable(path, follow=False)), None)
        return None

    def foreign_code(self, code: object) -> str | None:
        file = getattr(code, "co_filename", "")
        if file.startswith("<frozen ") or self.installed(file):
            return None
        return None if file.startswith("<") and caller().endswith(GENERATING) else f"code of {file!r} by {caller()}"

    def foreign_library(self, name: object) -> str | None:
        if name is None or "/" not in text(name):
            return None
        path = os.path.realpath(text(name))
        return None if self.installed(path) or within(path, self.own[1] / "regard" / "compiled") else path

    def compiler(self, executable: object, arguments: list, *_: object) -> bool:
        """Whether our own sources are compiled into the user's cache, or what became of them is tried."""
        paths = [each for each in map(str, arguments[1:]) if each.startswith("/")]
        if str(executable) == sys.executable:
            return arguments[1:3] == ["-I", "-c"] and all(within(each, self.own[1]) for each in paths)
        sources = Path(regard.__file__).parent / "decoding" / "engines" / "cpp"
        return executable in self.compilers and all(within(each, sources) or within(each, self.own[1]) for each in paths)

    def strange_open(self, path: object, mode: object, flags: object) -> str | None:
        if isinstance(path, int) or path is None:
            return None
        writes = (
            bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) if isinstance(flags, int) else "r" not in str(mode)
        )
        real = target(text(path), follow=not (isinstance(flags, int) and flags & os.O_NOFOLLOW))
        if writes:
            return None if real == "/dev/null" or self.writable(real) else f"{path!r} to write"
        readable = within(real, self.model.parent) or self.installed(real) or any(within(real, each) for each in READABLE)
        return None if readable or self.writable(real) else repr(path)

    def writable(self, path: str, follow: bool = True) -> bool:
        real = target(path, follow)
        return any(within(real, each) for each in self.own) or (self.writes_model and within(real, self.model))

    def installed(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(within(real, each) for each in self.packages)


def caller() -> str:
    """The file of the frame that raised the event."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_filename


def changed(event: str, given: tuple) -> list[str]:
    """The paths that an event changes, those within an open folder too."""
    two = event in ("os.rename", "os.link", "os.symlink")
    folders = given[-2:] if two and event != "os.symlink" else given[-1:] * 2
    paths = []
    for path, folder in zip(map(text, given[: 2 if two else 1]), folders, strict=False):
        inside = isinstance(folder, int) and folder >= 0 and event not in ("os.truncate", "os.chown")
        paths.append(os.path.join(os.readlink(f"/proc/self/fd/{folder}") if inside else "", path))
    return paths[1:] if event == "os.symlink" else [path for path in paths if path]


def target(path: str, follow: bool) -> str:
    """Where a path leads; a link at its end counts as itself where it is not followed."""
    if follow:
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def within(path: object, folder: object) -> bool:
    return str(path) == str(folder) or str(path).startswith(f"{folder}{os.sep}")


def text(path: object) -> str:
    return path if isinstance(path, str) else os.fsdecode(path) if isinstance(path, bytes | os.PathLike) else ""


class Watch:
    """What is opened, written or made in a folder, by whatever library: Linux says it."""

    OPEN, MODIFY, CREATE, DELETE = 0x20, 0x2, 0x100, 0x200

    def __init__(self, folder: Path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = self.OPEN | self.MODIFY | self.CREATE | self.DELETE
        if self.handle < 0 or libc.inotify_add_watch(self.handle, os.fsencode(folder), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify is not to be had")

    def seen(self) -> list[str]:
        """The names of what was touched since the last question."""
        names, data = [], b""
        while select.select([self.handle], [], [], 0)[0]:
            data += os.read(self.handle, 65536)
        while data:
            length = int.from_bytes(data[12:16], sys.byteorder)
            names.append(os.fsdecode(data[16 : 16 + length].rstrip(b"\0")) or ".")
            data = data[16 + length :]
        return names
