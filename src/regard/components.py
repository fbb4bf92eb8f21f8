"""Components of users: classes in a Python file that the user names, imported from the bytes whose digest was checked.

    my_scores.py:L1            the class L1 of a file, as a command line names it
    my_scores.py:L1@<sha256>   the same in a config and in a run: a name and a digest, from which nothing is ever imported

The file itself comes from the user each time: `regard predict run/ --component my_scores.py`. A component is one file; it
may import installed packages, and no file beside it.
"""

import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

from regard import registry
from regard.errors import ConfigError, DamagedError
from regard.manifest import digest
from regard.regular_files import read_regular

SUFFIX = ".py"
LIMIT = 2**22
"""The most bytes of a file of components."""
PREFIX = "regard_component_"
"""Modules of components are named by this and their digest: two versions of one file are two modules."""
REFERENCE = re.compile(r"(?P<title>[^@+]+)@(?P<digest>[0-9a-f]{64})")
"""A component in a config: its name, and the digest of its file."""
GROUPS = {
    "score": "regard.score",
    "normalise": "regard.normalise",
    "scope": "regard.scope",
    "mechanisms": "regard.mechanism",
}
"""Groups of entry points by kind: an installed package names its components there."""


class Source(NamedTuple):
    """A file of components as it was read: its path, its content, and the digest of that.

    The file of an installed component has its entry point, and that of a class that the user has imported has the class.
    """

    path: Path
    content: bytes
    digest: str
    entry: Any = None
    component: type[Any] | None = None

    def holds(self, title: str) -> bool:
        """True if a component of this name, "my_scores.py:L1" or that of an entry point, would come from here."""
        parts = split_reference(title)
        if self.entry is not None or parts is None:
            return self.entry is not None and self.entry.name == title
        same = parts[0] == str(self.path) or Path(parts[0]).name == self.path.name
        return same and (self.component is None or self.component.__name__ == parts[1])


Handed = type[Any] | str | os.PathLike[str] | Source
"""A component as a user hands it over: a class, a Python file, or the name of an entry point."""

HANDED: ContextVar[tuple[Source, ...]] = ContextVar("HANDED", default=())
"""Files that the user's command, or call, has handed over: what a config names comes from these, or is refused."""


class _Loader(SourceFileLoader):
    """Loader of a module from bytes: what was digested is what runs, and no bytecode is cached."""

    def __init__(self, name: str, source: Source):
        super().__init__(name, str(source.path))
        self.source = source

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.source.content)

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.source.content, str(self.source.path))


def split_reference(text: str) -> tuple[str, str] | None:
    """Path and class of "my_scores.py:L1"; None where a text names no file."""
    path, colon, name = text.rpartition(":")
    return (path, name) if colon and path.endswith(SUFFIX) else None


@contextmanager
def hand_over(components: Handed | Iterable[Handed]) -> Iterator[None]:
    """Let configs that are opened inside name these components. Nothing is imported before a digest was compared."""
    single = isinstance(components, str | os.PathLike | type | Source) or not isinstance(components, Iterable)
    listed = cast("Iterable[Handed]", [components] if single else components)
    token = HANDED.set((*HANDED.get(), *map(read_component, listed)))
    try:
        yield
    finally:
        HANDED.reset(token)


def hand_over_named(settings: Iterable[tuple[str, Any]]) -> None:
    """Hand over the files and entry points that settings of the user's own name: ("model.attention", "my_scores.py:L1")."""
    for path, value in settings:
        for part in value.split("+") if path.startswith("model.") and isinstance(value, str) else ():
            reference = split_reference(part)
            if part.endswith(SUFFIX):
                raise ConfigError(_without_class(part, path))
            if reference is not None and not REFERENCE.fullmatch(part):
                HANDED.set((*HANDED.get(), read_source(reference[0])))
            elif part.isidentifier() and not is_builtin_name(part) and part in list_entry_points():
                HANDED.set((*HANDED.get(), read_component(part)))


def _without_class(part: str, path: str) -> str:
    """Text about a Python file that a setting names without a class."""
    return f"{path} needs a class of the file {part}: {path}={part}:CLASS"


def list_handed() -> list[str]:
    """References to the user's components, by which another process of the same user finds them."""
    return [str(source.path.absolute()) if source.entry is None else source.entry.name for source in HANDED.get()]


def settle(value: Any) -> Any:
    """A table of settings with each component of a user named by file and digest, and known to the registry.

    Raises where the component was not handed over, or has another digest than the config names.
    """
    if isinstance(value, Mapping):
        return {key: settle(inner) for key, inner in value.items()}
    return "+".join(map(_settle_name, value.split("+"))) if isinstance(value, str) else value


def _settle_name(part: str) -> str:
    """One name: that of a stage as it is, that of a component with the digest of its file."""
    known = REFERENCE.fullmatch(part)
    title = known["title"] if known else part
    if known is None and split_reference(part) is None and not any(source.holds(part) for source in HANDED.get()):
        return part
    name = title.rpartition(":")[2]
    handed = [source for source in HANDED.get() if source.component is None or source.component.__name__ == name]
    exact = [source for source in handed if known and source.digest == known["digest"]]
    named = [source for source in handed if source.holds(title)]
    if known and named and not exact:
        raise ConfigError(
            f"{title} has changed: its SHA-256 was {known['digest']}, and {named[-1].path} has {named[-1].digest}; "
            "give the file as it was, or train again"
        )
    if not named and not exact:
        raise ConfigError(_missing(title, known["digest"] if known else None))
    source = (exact or [candidate for candidate in named if str(candidate.path) == title.rpartition(":")[0]] or named)[-1]
    return register(source, title)


def register(source: Source, title: str) -> str:
    """Import a component whose file the user handed over, and make it known by its name and digest, which is returned."""
    parts = split_reference(title)
    name = title if parts is None else f"{Path(parts[0]).name}:{parts[1]}"
    reference = f"{name}@{source.digest}"
    if "+" in name or "@" in name:
        raise ConfigError(f"{name} cannot be named in an attention, where + joins names; rename the file")
    if reference not in registry.COMPONENTS:
        component = source.component or _load_component(source, title if parts is None else parts[1])
        group = None if source.entry is None else source.entry.group
        kind = next((kind for kind, entry_group in GROUPS.items() if entry_group == group), None)
        registry.COMPONENTS[reference] = import_module("regard.attention.kinds").require_kind(component, kind), component
    return reference


def _missing(title: str, known: str | None) -> str:
    """Text about a component that nobody handed over."""
    parts = split_reference(title)
    file = title if parts is None else Path(parts[0]).name
    which = f" with SHA-256 {known}" if known else ""
    return (
        f"the component {title} needs {'the installed component' if parts is None else 'its file'} {file}{which}, since a "
        f"config imports no code by itself: pass --component {file}, or components=[{file!r}] in Python"
    )


def read_component(component: Handed) -> Source:
    """Source of a user's component, read but not imported: a Python file, the file of a class, or that of an entry point."""
    if isinstance(component, Source):
        return component
    if isinstance(component, type):
        file = inspect.getsourcefile(component) if component.__module__ != "builtins" else None
        if file is None or not os.path.isfile(file):
            raise ConfigError(
                f"{component.__name__} has no file, whose digest would name it; put the class into a Python file"
            )
        return read_source(file)._replace(component=component)
    if not isinstance(component, str | os.PathLike):
        raise ConfigError(
            "a component is handed over as a class, a Python file or the name of an installed one, got "
            f"{type(component).__name__}"
        )
    text = os.fspath(component)
    parts = split_reference(text)
    if parts is not None or text.endswith(SUFFIX):
        return read_source(text if parts is None else parts[0])
    installed = list_entry_points()
    if text not in installed:
        names = f"; installed are {', '.join(installed)}" if installed else ""
        raise ConfigError(f"{text!r} is neither a Python file (my_scores.py) nor an installed component{names}")
    entry = installed[text]
    return read_source(_find_module(entry))._replace(entry=entry)


@cache
def list_entry_points() -> dict[str, Any]:
    """Components of installed packages by name; a name that regard has itself is regard's."""
    from importlib.metadata import entry_points  # which takes a while

    entries = [entry for group in GROUPS.values() for entry in entry_points(group=group)]
    return {entry.name: entry for entry in sorted(entries) if not is_builtin_name(entry.name)}


def is_builtin_name(name: str) -> bool:
    """True if regard itself has a stage or mechanism of this name."""
    return name == "none" or any(name in registry.names(kind) for kind in registry.FINDABLE)


def _find_module(entry: Any) -> Path:
    """The file of an entry point's module, found without importing it where the package lists its files."""
    tail = entry.module.replace(".", "/")
    for file in (entry.dist.files or ()) if entry.dist is not None else ():
        if str(file) in (f"{tail}.py", f"{tail}/__init__.py"):
            return Path(str(file.locate()))
    spec = importlib.util.find_spec(entry.module)
    if spec is None or spec.origin is None:
        raise ConfigError(f"the installed component {entry.name} names the module {entry.module}, which is not there")
    return Path(spec.origin)


def _load_component(source: Source, name: str) -> type[Any]:
    """Import a component: from the bytes that were digested, or as the installed package that it is part of."""
    if source.entry is None:
        return find_class(source, name)
    try:
        component = source.entry.load()
    except Exception as error:
        text = f"the installed component {name} cannot be imported: {type(error).__name__}: {error}"
        raise ConfigError(text) from error
    if not isinstance(component, type):
        raise ConfigError(f"the installed component {name} is no class but {component!r:.80}")
    return component


def open_component(reference: str) -> type[Any]:
    """The class that a user names: "my_scores.py:L1", or the name of an installed component."""
    parts = split_reference(reference)
    if parts is not None and parts[1]:
        return find_class(read_source(parts[0]), parts[1])
    if not reference.endswith((SUFFIX, ":")) and reference in list_entry_points():
        return _load_component(read_component(reference), reference)
    raise ConfigError(
        f"{reference!r} names no class in a Python file; write it as my_scores.py:L1, or name an installed component"
    )


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
    spec = ModuleSpec(name, _Loader(name, source), origin=str(source.path))
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
