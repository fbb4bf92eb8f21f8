"""Parameters of stages as settings: the arguments of a constructor that stand beside model.attention.

    --model.attention=entmax --model.attention.alpha=1.3
    attention = {name = "entmax", alpha = 1.3}                           the same in TOML
    --model.attention=relative+local --model.attention.local.window=4    where two stages have a parameter of this name

Types come from annotations, and descriptions from docstrings. In a config they stand beside the name: flat where one stage
alone has a parameter of that name, else below the name of their stage.
"""

import difflib
import inspect
import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from regard import registry
from regard.config.docs import read_meanings
from regard.config.hints import unknown_setting
from regard.config.settings import BOUNDS
from regard.errors import ConfigError

SIZES = {"query", "key", "value", "heads", "limit"}
"""Arguments of every stage that follow from the model."""
OPTIONS = {*SIZES, "size", "score", "normalise", "scope", "dropout", "bias", "impl"}
"""Arguments of a mechanism that follow from the model, from other settings, or from the other stages of its name."""
IMPLIED = {"score": "scaled_dot", "normalise": "softmax"}
"""Stages of an attention without a mechanism that its name leaves out."""
MOST = 65_536
"""Upper bound of an integer that has no bound of its own: a window, a number of filters."""
LONGEST = 200
"""The most characters of a text."""
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "none"}
SCALARS = (bool, int, float, str)


class Parameter(NamedTuple):
    """One parameter of a stage."""

    name: str
    type: Any
    default: Any
    meaning: str

    @property
    def kind(self) -> str:
        """Its type in words, or the values of a literal."""
        members = get_args(self.type) if get_origin(self.type) is Union else (self.type,)
        names = []
        for member in members:
            names += [str(value) for value in get_args(member)] if get_origin(member) is Literal else [WORDS[member]]
        return " or ".join(names)


def list_parameters(component: type[Any], kind: str) -> dict[str, Parameter]:
    """Parameters of a stage or mechanism by name: numbers, texts and switches that no other setting determines."""
    supplied = OPTIONS if kind == "mechanisms" else SIZES
    parameters: dict[str, Parameter] = {}
    constructor = next((owner for owner in component.__mro__ if "__init__" in vars(owner)), component)
    for owner, argument in _iterate_arguments(component):
        name, default = argument.name, argument.default
        scalar = _find_scalar(argument)
        if name in supplied or name in parameters or scalar is None:
            continue
        if owner is constructor or _takes(component, name, default):
            parameters[name] = Parameter(name, scalar, None if default is argument.empty else default, explain(owner, name))
    return parameters


def explain(component: type[Any], name: str) -> str:
    """Description of a parameter in the docstring of a class, or else of its parents."""
    foreign = ("torch", "builtins")
    owners = [owner for owner in component.__mro__ if owner.__module__.partition(".")[0] not in foreign]
    return next((text for owner in owners if (text := _explain(owner, name))), "")


def _explain(component: type[Any], name: str) -> str:
    """The line of a docstring about a parameter, the text below its field, or the first sentence that names it."""
    text = inspect.cleandoc(component.__doc__ or "")
    if line := re.search(rf"^\s*`?{re.escape(name)}`?(?: \([^)]*\))?: (.+)$", text, re.MULTILINE):
        return line[1].strip()
    if is_dataclass(component):
        try:
            below = read_meanings(component)
        except (OSError, TypeError, SyntaxError):  # a class without a source
            below = {}
        if name in below:
            return below[name]
    prose = " ".join(" ".join(line.split()) for line in text.splitlines() if not line.startswith("    "))
    parts = [part.strip() for part in re.split(r"(?<=[.:])\s+(?=[A-Z`])|https?://\S+", prose)]
    marked = [part for part in parts if re.search(rf"`{re.escape(name)}\b|\b{re.escape(name)}=", part)]
    plain = [part for part in parts if re.search(rf"\b{re.escape(name)}\b", part)]
    return next(iter((*marked, *plain)), "")


def list_stages(name: str) -> dict[str, dict[str, Parameter]]:
    """The stages of an attention's name, implied ones included, and the parameters of each."""
    if name == "none":
        return {}
    kinds = {part: registry.locate(part) for part in name.split("+")}
    if "mechanisms" not in kinds.values():
        kinds |= {part: kind for kind, part in IMPLIED.items() if kind not in kinds.values()}
    return {registry.label(part): list_parameters(registry.find(part, kind), kind) for part, kind in kinds.items()}


def read_parameters(name: str, table: Mapping[str, Any], group: str, paths: Sequence[str]) -> dict[str, Any]:
    """The parameters in a table, each with the type that its stage gives it; raises for one that no stage of `name` has.

    `group` is the path of the part ("model.attention."), and `paths` are the settings that there are.
    """
    try:
        stages = list_stages(name)
    except LookupError as error:
        raise ConfigError(f"{group[:-1]}: {error}") from error
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and key in stages:
            for inner, setting in value.items():
                if inner not in stages[key]:
                    raise ConfigError(_unknown(f"{group}{key}.{inner}", {key: stages[key]}, paths))
                _put(values, stages, key, inner, _read(f"{group}{key}.{inner}", stages[key][inner], setting))
            continue
        owners = [stage for stage, parameters in stages.items() if key in parameters]
        path = f"{group}{key}"
        if not owners or isinstance(value, Mapping):
            raise ConfigError(_unknown(path, stages, paths))
        if len(owners) > 1:
            full = " or ".join(f"{group}{owner}.{key}" for owner in owners)
            raise ConfigError(f"{path}: {' and '.join(owners)} both have a parameter {key}; write {full}")
        _put(values, stages, owners[0], key, _read(path, stages[owners[0]][key], value))
    return values


def assign_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The parameters of each stage of a name, by the stage."""
    if not parameters:
        return {}
    stages = list_stages(name)
    assigned: dict[str, dict[str, Any]] = {stage: {} for stage in stages}
    for key, value in parameters.items():
        owners = [key] if isinstance(value, Mapping) else [stage for stage, known in stages.items() if key in known]
        if len(owners) != 1 or owners[0] not in stages:
            raise ConfigError(_unknown(f"model.attention.{key}", stages, ["model.attention.name", "model.attention.heads"]))
        assigned[owners[0]] |= value if isinstance(value, Mapping) else {key: value}
    return assigned


def _put(values: dict[str, Any], stages: Mapping[str, Mapping[str, Parameter]], stage: str, name: str, value: Any) -> None:
    """Set a parameter in its one place: flat, unless two stages, or a setting of the part, have this name."""
    shared = sum(name in parameters for parameters in stages.values()) > 1
    place = values.setdefault(stage, {}) if shared or name in ("name", "heads", "size") or name in stages else values
    place[name] = value


def _read(path: str, parameter: Parameter, value: Any) -> Any:
    """A value from TOML or from the command line, with the type of its parameter."""
    from pydantic import TypeAdapter, ValidationError

    try:
        read = TypeAdapter(parameter.type).validate_python(value)
    except ValidationError as error:
        raise ConfigError(f"{path} needs {parameter.kind}, got {_quote(value)}") from error
    if isinstance(read, float) and not math.isfinite(read):
        raise ConfigError(f"{path} needs to be a finite number, got {read}")
    most = BOUNDS.get(parameter.name, MOST)
    if isinstance(read, int) and not -most <= read <= most:
        raise ConfigError(f"{path} needs to be {most:,} or less, got {_quote(value)}")
    if isinstance(read, str) and (len(read) > LONGEST or not read.isprintable()):
        raise ConfigError(f"{path} needs to be a text of at most {LONGEST} characters on one line, got {_quote(value)}")
    return read


def _unknown(path: str, stages: Mapping[str, Mapping[str, Parameter]], paths: Sequence[str]) -> str:
    """Text about a parameter that no stage has: the setting that is meant, and the parameters that there are."""
    group, _, key = path.rpartition(".")
    near = difflib.get_close_matches(key, [name for parameters in stages.values() for name in parameters], n=1)
    text = f"there is no setting {path}; did you mean {group}.{near[0]}?" if near else unknown_setting(path, paths)
    having = "; ".join(f"{stage} has {_join(parameters)}" for stage, parameters in stages.items()) or "there are none"
    return f"{text}{'' if text.endswith('?') else ';'} parameters of its stages: {having}"


def _join(names: Mapping[str, Any]) -> str:
    """a; a and b; a, b and c."""
    *rest, last = names or ["none"]
    return f"{', '.join(rest)} and {last}" if rest else last


def _quote(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _iterate_arguments(component: type[Any]) -> Iterator[tuple[type[Any], inspect.Parameter]]:
    """Arguments of a constructor, and those that it hands on to its parents, each with the class that names it."""
    for owner in component.__mro__:
        if "__init__" not in vars(owner) or owner is object:
            continue
        arguments = list(inspect.signature(owner).parameters.values())
        spread = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        yield from ((owner, argument) for argument in arguments if argument.kind not in spread)
        if not any(argument.kind is argument.VAR_KEYWORD for argument in arguments):
            return


def _find_scalar(argument: inspect.Parameter) -> Any:
    """The numbers, texts and switches that an argument may be, as a type; None where it is none of them."""
    annotation, default = argument.annotation, argument.default
    if isinstance(annotation, str):
        annotation = {scalar.__name__: scalar for scalar in SCALARS}.get(annotation, Any)
    if annotation in (argument.empty, Any):
        return type(default) if type(default) in SCALARS else None
    union = get_origin(annotation) in (Union, types.UnionType)
    members = get_args(annotation) if union else (annotation,)
    scalars = tuple(member for member in members if member in SCALARS or get_origin(member) is Literal)
    if not scalars:
        return None
    empty = (type(None),) if type(None) in members else ()
    return Union[(*scalars, *empty)]  # of members that are known when it runs


def _takes(component: type[Any], name: str, default: Any) -> bool:
    """True if an argument of a parent may be given to a class, which does not set it itself."""
    import torch

    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            component(16, 16, **{name: default})
    except (TypeError, ValueError):
        return False
    return True
