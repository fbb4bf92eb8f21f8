"""What settings mean: the sentence that stands below a field of a config, and the values that it takes."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from textwrap import dedent
from typing import Any, Literal, NamedTuple, get_args, get_origin


class Setting(NamedTuple):
    """One setting: its dotted path, its values where there is a list of them, and what it means, if that is said."""

    path: str
    values: tuple[str, ...]
    meaning: str


def explained(kind: type) -> Iterator[Setting]:
    """Every setting of a config, in the order of `everything`."""
    meanings = sentences(kind)
    for each in fields(kind):
        inner = next((part for part in (each.type, *get_args(each.type)) if is_dataclass(part)), None)
        if inner is None:
            whole = inspect.getdoc(kind) or "" if each.name == "name" else ""  # a part with a name is what it names
            yield Setting(each.name, choices(each.type), meanings.get(each.name, whole))
        else:
            assert isinstance(inner, type), "a part of a config is a class"
            yield from (one._replace(path=f"{each.name}.{one.path}") for one in explained(inner))


def choices(kind: Any) -> tuple[str, ...]:
    """The values of a setting that is one of a few words."""
    literals = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
    return tuple(str(value) for part in literals for value in get_args(part))


WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
"""Types of settings in words."""


def describe_values(kind: Any, path: Sequence[str]) -> str:
    """The values that the setting at a path takes, in words: a number, true or false, relu or gelu."""
    for name in path:
        kind = next((part for part in (kind, *get_args(kind)) if is_dataclass(part)), None)
        kind = {field.name: field.type for field in fields(kind)}.get(name) if kind else None
    if values := choices(kind):
        return " or ".join(filter(None, [", ".join(values[:-1]), values[-1]]))
    return next((WORDS[part] for part in (kind, *get_args(kind)) if part in WORDS), "a table of settings")


def sentences(kind: type) -> dict[str, str]:
    """What stands below each field in the source of a class and of those that it comes from; the nearest one counts."""
    found = {}
    for each in filter(is_dataclass, reversed(kind.__mro__)):
        [made] = ast.parse(dedent(inspect.getsource(each))).body
        assert isinstance(made, ast.ClassDef), "a config is a class"
        for field, below in pairwise(made.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found
