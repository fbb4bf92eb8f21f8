"""Documentation of settings: the sentence below a field of a config, and the values that it takes."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from textwrap import dedent
from typing import Any, Literal, NamedTuple, get_args, get_origin


class Setting(NamedTuple):
    """One setting: its dotted path, its values where they are a list, and its documented meaning, if any."""

    path: str
    values: tuple[str, ...]
    meaning: str


def describe_settings(kind: type) -> Iterator[Setting]:
    """Describe every setting of a config, in the order of `everything`."""
    meanings = read_meanings(kind)
    for field in fields(kind):
        if field.name == "parameters":  # of stages, which are settings of their own
            continue
        inner = next((part for part in (field.type, *get_args(field.type)) if is_dataclass(part)), None)
        if inner is None:
            whole = inspect.getdoc(kind) or "" if field.name == "name" else ""  # a part with a name is what it names
            yield Setting(field.name, list_choices(field.type), meanings.get(field.name, whole))
        else:
            assert isinstance(inner, type), "a part of a config is a class"
            yield from (setting._replace(path=f"{field.name}.{setting.path}") for setting in describe_settings(inner))


def list_choices(kind: Any) -> tuple[str, ...]:
    """List the values of a setting that is one of a few words."""
    literals = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
    return tuple(str(value) for part in literals for value in get_args(part))


WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
"""Types of settings in words."""


def describe_values(kind: Any, path: Sequence[str]) -> str:
    """The values that the setting at a path takes, in words: a number, true or false, relu or gelu."""
    for name in path:
        kind = next((part for part in (kind, *get_args(kind)) if is_dataclass(part)), None)
        kind = {field.name: field.type for field in fields(kind)}.get(name) if kind else None
    if values := list_choices(kind):
        return " or ".join(filter(None, [", ".join(values[:-1]), values[-1]]))
    named = is_dataclass(kind) and fields(kind)[0].name == "name"
    table = "a name, or a table of settings with one" if named else "a table of settings"
    return next((WORDS[part] for part in (kind, *get_args(kind)) if part in WORDS), table)


def read_meanings(kind: type) -> dict[str, str]:
    """Read the sentence below each field in the source of a class and of its bases; the nearest one counts."""
    meanings = {}
    for base in filter(is_dataclass, reversed(kind.__mro__)):
        [definition] = ast.parse(dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef), "a config is a class"
        for statement, below in pairwise(definition.body):
            match statement, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    meanings[name] = " ".join(text.split())
    return meanings
