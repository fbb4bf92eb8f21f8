"""Components of users: classes in a Python file that the user names, imported from the bytes whose digest was checked.

    my_scores.py:L1            the class L1 of a file, as a command line names it
    my_scores.py:L1@<sha256>   the same in a config and in a run: a name and a digest, from which nothing is ever imported

The file itself comes from the user each time: `regard predict run/ --component my_scores.py`. A component is one file; it
may import installed packages, and no file beside it.
"""

import importlib.util
import sys
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from regard.errors import ConfigError, DamagedError
from regard.manifest import digest
from regard.regular_files import read_regular

SUFFIX = ".py"
LIMIT = 2**22
"""The most bytes of a file of components."""
PREFIX = "regard_component_"
"""Modules of components are named by this and their digest: two versions of one file are two modules."""


class Source(NamedTuple):
    """A Python file as it was read: its path, its content, and the digest of that."""

    path: Path
    content: bytes
    digest: str


class _Loader(InspectLoader):
    """Loader of a module from bytes: what was digested is what runs, and no bytecode is cached."""

    def __init__(self, source: Source):
        self.source = source

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.source.content)

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.source.content, str(self.source.path))


def split_reference(text: str) -> tuple[str, str] | None:
    """Path and class of "my_scores.py:L1"; None where a text names no file."""
    path, colon, name = text.rpartition(":")
    return (path, name) if colon and path.endswith(SUFFIX) else None


def read_source(path: Path | str) -> Source:
    """Read a Python file of components, without running it."""
    try:
        content = read_regular(Path(path), LIMIT)
    except DamagedError as error:
        raise ConfigError(f"{error}; give the Python file that holds the component") from error
    return Source(Path(path), content, digest(content))


def import_source(source: Source) -> ModuleType:
    """Import a file that the user has named; a second call with the same content gives the same module."""
    name = f"{PREFIX}{source.digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = ModuleSpec(name, _Loader(source), origin=str(source.path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it runs
    try:
        module.__spec__.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        line = " ".join(str(error).split())
        raise ConfigError(f"{source.path} cannot be imported: {type(error).__name__}: {line}; mend the file") from error
    return module


def find_class(source: Source, name: str) -> type[Any]:
    """The class of a name in a file of components."""
    module = import_source(source)
    value = getattr(module, name, None)
    if isinstance(value, type):
        return value
    classes = [name for name, member in vars(module).items() if getattr(member, "__module__", None) == module.__name__]
    names = ", ".join(name for name in classes if isinstance(getattr(module, name), type))
    what = f"{name} is no class there" if value is not None else f"there is no class {name} in it"
    raise ConfigError(f"{source.path}: {what}; " + (f"it has {names}" if names else "it has no class at all"))
