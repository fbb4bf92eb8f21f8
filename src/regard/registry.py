"""Registry: finds every stage, mechanism and kernel by its file name; the folder is the registry.

File `score/scaled_dot.py` holds `ScaledDot`, and that is all there is to register. Nothing here imports torch, so that
listing is quick; a file is imported on first use.
"""

import ast
import difflib
import inspect
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parent

FOLDERS = {
    "score": "attention/score",
    "normalise": "attention/normalise",
    "scope": "attention/scope",
    "positions": "attention/positions",
    "mechanisms": "attention/mechanisms",
    "visual": "attention/visual",
    "kernels": "kernels",
    "tasks": "tasks",
    "output_heads": "models/output_heads",
}
"""Kinds and the folder whose files are their members."""

SINGULAR = {
    "normalise": "normaliser",
    "mechanisms": "mechanism",
    "kernels": "kernel",
    "tasks": "task",
    "output_heads": "output layer",
}
"""Singular of a kind, where it differs from the kind's name."""

MAIN_FILE = {"tasks": "task"}
"""Kinds whose members may be a folder, and the file in it that the name stands for: tasks/vqa/task.py is vqa."""

FINDABLE = ("score", "normalise", "scope", "positions", "mechanisms", "visual")
"""Kinds that `find` searches by default; kernels are excluded, as they may share the name of what they make fast."""


COMPONENTS: dict[str, tuple[str, type[Any]]] = {}
"""Components of users that are open in this process, by name and digest (`components.py`): kind and class."""


def names(kind: str) -> list[str]:
    """Names of one kind, in alphabetical order."""
    folder = PACKAGE / _folder(kind)
    packages = folder.glob(f"[!_]*/{MAIN_FILE[kind]}.py") if kind in MAIN_FILE else ()
    return sorted([path.stem for path in folder.glob("[!_]*.py")] + [path.parent.name for path in packages])


def find(name: str, kind: str | None = None) -> type[Any]:
    """Class called `name`: find("scaled_dot") is ScaledDot."""
    kind = locate(name, kind)
    if name in COMPONENTS:
        return COMPONENTS[name][1]
    module = load(kind, name)
    component = getattr(module, class_name(name), None)
    if not isinstance(component, type):
        raise LookupError(f"{module.__name__} needs a class called {class_name(name)}, and has none")
    return component


def locate(name: str, kind: str | None = None) -> str:
    """Kind of a name; raises with the nearest name if it is unknown, or with its kinds if it is ambiguous."""
    kinds = FINDABLE if kind is None else (kind,)
    if name in COMPONENTS and COMPONENTS[name][0] in kinds:
        return COMPONENTS[name][0]
    holders = [holder for holder in kinds if name in names(holder)]
    if len(holders) == 1:
        return holders[0]
    if holders:
        raise LookupError(f"{name!r} is ambiguous: there is one in {', '.join(holders)}; say which kind")
    known = [stem for holder in kinds for stem in names(holder)]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
    what = "stage or mechanism" if kind is None else SINGULAR.get(kind, kind)
    raise LookupError(f"no {what} is called {name!r}{hint}")


def load(kind: str, name: str) -> ModuleType:
    """Import the module of one file."""
    return import_module(".".join(("regard", *_path(kind, name).split("/"))))


def every(kind: str) -> list[type[Any]]:
    """Classes of one kind, which the contract tests run over."""
    return [find(name, kind) for name in names(kind)]


def build(what: Any, kind: str, **sizes: Any) -> Any:
    """Build a stage from its name or class; an instance is returned as it is.

    A name, a class or a partial of a class is built with those of `sizes` that its constructor takes.
    """
    stage = find(what, kind) if isinstance(what, str) else what
    if not isinstance(stage, type | partial):
        return stage
    parameters = inspect.signature(stage).parameters
    missing = [name for name in list_required(stage, kind) if name not in sizes]
    if missing:
        title = stage.func.__name__ if isinstance(stage, partial) else stage.__name__
        raise LookupError(f"{title} needs {', '.join(missing)} beside its sizes; give it built: {title}(...)")
    return stage(**{size: value for size, value in sizes.items() if size in parameters})


def list_required(what: Any, kind: str) -> list[str]:
    """Required constructor arguments of a stage, given by name or class."""
    stage = find(what, kind) if isinstance(what, str) else what
    spread = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(stage).parameters.values()
    return [
        parameter.name for parameter in parameters if parameter.default is parameter.empty and parameter.kind not in spread
    ]


def summary(name: str, kind: str) -> str:
    """First line of the docstring of a class, read without importing it."""
    tree = ast.parse((PACKAGE / f"{_path(kind, name)}.py").read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name(name)]
    text = ast.get_docstring(classes[0] if classes else tree) or ""
    return text.partition("\n")[0]


class TaskOption(NamedTuple):
    """Command-line option that a task declares."""

    name: str
    commands: tuple[str, ...]
    help: str
    models: str
    """The models that it is for, in the message for others."""
    is_file: bool = False


@cache
def task_options() -> tuple[TaskOption, ...]:
    """Command-line options of all tasks: the literal OPTIONS of tasks/*/options.py, read without an import."""
    options = []
    for path in sorted((PACKAGE / FOLDERS["tasks"]).glob("[!_]*/options.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OPTIONS":
                options += [TaskOption(name, **values) for name, values in ast.literal_eval(node.value).items()]
    return tuple(merge_options(options))


def merge_options(options: list[TaskOption]) -> list[TaskOption]:
    """Options of one name once: what several tasks declare has the commands of all, and the words of the first."""
    merged: dict[str, TaskOption] = {}
    for option in options:
        first = merged.get(option.name, option)
        merged[option.name] = first._replace(commands=tuple(dict.fromkeys((*first.commands, *option.commands))))
    return list(merged.values())


def find_attribute(module: str, name: str) -> Any:
    """Class of a stage folder by name, for `from regard.attention.score import ScaledDot`."""
    kind = module.rpartition(".")[2]
    for stem in names(kind):
        if class_name(stem) == name:
            return find(stem, kind)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def label(name: str) -> str:
    """The word for a stage in settings and messages: its name, and of a component of a user the class."""
    return name.partition("@")[0].rpartition(":")[2]


def class_name(stem: str) -> str:
    """Class name of a file's stem: scaled_dot -> ScaledDot."""
    return "".join(word.capitalize() for word in stem.split("_"))


def _path(kind: str, name: str) -> str:
    """Path of a name's file in the package, without its suffix."""
    path = f"{_folder(kind)}/{name}"
    return f"{path}/{MAIN_FILE[kind]}" if kind in MAIN_FILE and (PACKAGE / path).is_dir() else path


def _folder(kind: str) -> str:
    if kind not in FOLDERS:
        raise LookupError(f"there is no kind {kind!r}; the kinds are {', '.join(FOLDERS)}")
    return FOLDERS[kind]
