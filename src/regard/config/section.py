"""Sections of a config: groups of settings that record which of them were named.

The defaults of a task differ from those of a section. `Config(train=Train(max_steps=100))` names one setting, and the others
keep the defaults of the task, as they do in a TOML file and on the command line.
"""

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from regard.errors import ConfigError

FIELD = "parameters"
"""The field of a section that holds parameters of stages, which are settings beside its own (config/parameters.py)."""
NAMED = "_named"
"""Attribute with the fields that a constructor call named; where it is missing (pydantic calls none), all fields count."""


class SectionType(type):
    """Metaclass of sections: records the fields that a constructor call names, and turns a name into the part it names."""

    if not TYPE_CHECKING:  # type checkers read the signature of the dataclass

        def __call__(cls, *arguments: Any, **named: Any) -> Any:
            kinds = {field.name: field.type for field in fields(cls)}
            for name, value in named.items():
                if isinstance(value, str) and isinstance(kinds.get(name), SectionType):
                    named[name] = kinds[name](value)
            section = super().__call__(*arguments, **named)
            object.__setattr__(section, NAMED, frozenset([*list(kinds)[: len(arguments)], *named]))
            return section


@dataclass(frozen=True)
class Section(metaclass=SectionType):
    """Base of frozen dataclasses of settings. `dataclasses.replace` makes a section that names all of its fields."""

    __slots__ = (NAMED,)  # not among the fields, nor in vars()

    def __setstate__(self, state: Any) -> None:
        """Restore a copy, frozen as it is: its fields and, where there is one, its slot."""
        for values in state if isinstance(state, tuple) else (state,):
            for name, value in values.items():
                object.__setattr__(self, name, value)


def complete(config: Any) -> None:
    """Give each section of a new config the defaults of the config's class, but for the fields that were named."""
    for field in fields(config):
        if field.default_factory is not MISSING:
            section = overlay(getattr(config, field.name), field.default_factory(), field.name)
            object.__setattr__(config, field.name, section)


def overlay(section: Any, default: Section, path: str) -> Section:
    """A default with the named fields of a section; a section that was not built by a call has all it needs."""
    check_kind(section, default, path)
    named = getattr(section, NAMED, None)
    if isinstance(section, type(default)) and named is None:
        return section
    names = [field.name for field in fields(section)] if named is None else named
    changes = {name: _nested(getattr(section, name), getattr(default, name, None), f"{path}.{name}") for name in names}
    if isinstance(default, type(section)):
        return replace(default, **changes)
    others = {field.name: getattr(default, field.name) for field in fields(default)}
    return replace(section, **{**others, **changes})  # a class of a user's own, with fields that the default has not


def check_kind(section: Any, default: Section, path: str) -> None:
    """Raise for a section of another kind than the config's, such as Dropout in the place of Train."""
    if not isinstance(section, Section) or not (isinstance(default, type(section)) or isinstance(section, type(default))):
        raise ConfigError(
            f"{path} needs to be a {type(default).__name__}, got {type(section).__name__}; tables are taken by regard.train"
        )


def named_settings(section: Any, path: str) -> dict[str, Any]:
    """The settings that a section or a table names, as a table; paths of files become text."""
    if isinstance(section, Section):
        named = getattr(section, NAMED, None)
        values = {field.name: getattr(section, field.name) for field in fields(section)}
        section = values if named is None else {name: value for name, value in values.items() if name in named}
        section |= section.pop(FIELD, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{path} needs to be a table of settings, got {type(section).__name__}")
    return {name: _plain(value, f"{path}.{name}") for name, value in section.items()}


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, Section | Mapping):
        return named_settings(value, path)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _nested(value: Any, default: Any, path: str) -> Any:
    return overlay(value, default, path) if isinstance(default, Section) else value
