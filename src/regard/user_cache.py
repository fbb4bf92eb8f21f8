"""The user's cache folder: compiled code and exported engines that later programs load again.

    XDG_CACHE_HOME, else ~/.cache  /  regard  /  KIND  /  one entry for each digest

What lies here is loaded as code, so nobody but the user may be able to write or exchange it: the owner and mode of every
folder are checked before it is used (those above the home folder excepted), and those of a library before it is loaded.
Where that fails, a temporary folder takes its place, which is removed when the program ends. Nothing of this lies in a
model directory, which somebody else may have made, even where XDG_CACHE_HOME names one.
"""

import atexit
import os
import shutil
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path

NAME = "regard"
OTHERS = stat.S_IWGRP | stat.S_IWOTH
"""The bits of a mode that let others write."""
MANIFEST = "manifest.json"
"""The file that every model directory has."""
INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"
"""The variable that tells PyTorch's compiler where its cache is; kernels of Triton that it compiles lie below it."""
TRITON = ("TRITON_CACHE_DIR", "TRITON_HOME")
"""The variables that tell Triton where its cache is."""


def cache_folder(kind: str) -> Path:
    """The folder for artefacts of one kind, which is private to the user.

    Where the user's cache cannot be used, a warning says why, once, and it is a temporary folder.
    """
    folder = find_folder(kind)
    why = _create(folder.parent.parent, folder)
    if why is None:
        return folder
    _warn(why)
    folder = temporary_folder() / kind
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def find_folder(kind: str) -> Path:
    """The place of the folder for artefacts of one kind, which need not exist and is not checked."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache"))
    return root / NAME / kind


@cache
def temporary_folder() -> Path:
    """A private folder that is removed when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def is_private(path: Path) -> bool:
    """Return True if a file or folder is the user's own, is no symbolic link, and can be written by nobody else."""
    return _objection(path) is None


def set_compiler_cache() -> None:
    """Point the cache of PyTorch's compiler at the user's cache folder; call it before torch.compile.

    PyTorch unpickles what it finds in its cache, and by default that is /tmp/torchinductor_USER, which any user of the
    machine can make beforehand. A folder that the user has named in the variable stays.
    """
    chosen = Path(os.environ.get(INDUCTOR, ""))
    default = Path(tempfile.gettempdir()) / "torchinductor_"  # and the user's name; PyTorch itself puts it into the variable
    if not chosen.name or (chosen.parent == default.parent and chosen.name.startswith(default.name)):
        os.environ[INDUCTOR] = str(cache_folder("inductor"))


def set_kernel_cache() -> None:
    """Point Triton's cache at the user's cache folder; call it before a kernel is launched.

    Triton loads the code that it finds there, and checks neither owner nor mode. A folder that the user has named for it in
    a variable stays.
    """
    if not any(os.environ.get(name) for name in TRITON):
        os.environ[TRITON[0]] = str(cache_folder("triton"))


def _create(root: Path, folder: Path) -> str | None:
    """Create a folder and those between it and the root of the user's caches; the reason where one cannot be trusted."""
    if not root.is_absolute():
        return "there is no home folder"
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        why = _objection_above(root.resolve())
        for path in (folder.parent, folder):
            if why is None:
                path.mkdir(exist_ok=True, mode=0o700)
                why = _objection(path)
    except OSError as error:
        return f"{error.filename} cannot be used ({error.strerror})"
    return why if why is not None or os.access(folder, os.W_OK | os.X_OK) else f"{folder} cannot be written"


def _objection_above(root: Path) -> str | None:
    """Why the root of the user's caches cannot be trusted, or None.

    Whoever can write a folder above it can put another in its place, such as a directory of models that the user has
    unpacked. Those above the home folder are the system's.
    """
    folders = [root, *root.parents]
    if (model := next((folder for folder in folders if (folder / MANIFEST).exists()), None)) is not None:
        return f"{root} lies in {model}, which has a {MANIFEST} as model directories do"
    home = Path(os.path.expanduser("~")).resolve()
    own = folders[: folders.index(home) + 1] if home in folders else folders
    return next((why for folder in own if (why := _objection(folder, shared=True)) is not None), None)


def _objection(path: Path, shared: bool = False) -> str | None:
    """Reason not to trust a file or folder, or None. A `shared` one may be root's, and written by others if sticky."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a symbolic link"
    owners = {os.getuid(), 0} if shared else {os.getuid()}
    if status.st_uid not in owners:
        return f"{path} belongs to another user (uid {status.st_uid})"
    if status.st_mode & OTHERS and not (shared and status.st_mode & stat.S_ISVTX):
        return f"other users can write {path} (mode {stat.S_IMODE(status.st_mode):o}; chmod go-w mends that)"
    return None


@cache
def _warn(why: str) -> None:
    """Say it once."""
    warnings.warn(
        f"the user's cache is not used: {why}. What is compiled or exported now is kept in a temporary folder, which is "
        "removed at the end",
        RuntimeWarning,
        stacklevel=2,
    )
