"""Configs from text and back: TOML and dotted overrides, checked where they come in."""

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

Config = TypeVar("Config")

COUNTS = {"max_steps", "accumulate", "keep", "bad_batches", "vocabulary", "least", "longest_source", "longest_target"}
COUNTS |= {"batch_tokens", "samples", "size", "embedding", "layers", "heads", "feedforward", "beam", "length", "batch"}
COUNTS |= {"risk_samples"}
COUNTS |= {"decoder_layers", "self_size"}
COUNTS |= {"kernel", "film_every", "groups", "candidates"}
COUNTS |= {"height", "width", "batch_pixels", "stride", "depth", "map"}
COUNTS |= {"queries"}
COUNTS |= {"text_layers", "space", "reranked"}
COUNTS |= {"side", "scales", "copies", "runs", "frames"}
COUNTS |= {"longest_question", "hops", "question_layers"}
"""Settings that are at least 1, wherever they stand; every other number is at least 0."""
SHARES = {"smoothing", "ema", "soft_looks"}
"""Settings below 1, as all dropouts are."""
REMOVED = {"search.compile": "`regard predict --compile` compiles a search; remove the line, or give that option"}
"""Settings of earlier versions, with what to do instead. A run directory that one of them wrote names them all."""


def read(kind: type[Config], *sources: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """A config from its defaults, TOML files, tables and overrides such as "train.rate=0.01", later ones winning."""
    table = plain(kind())
    for source in sources:
        merge(table, parse(source) if isinstance(source, Path) else source)
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not path:
            raise ConfigError(f"{override!r} needs the form part.key=value")
        merge(table, nested(path.split("."), text))
    return check(kind, table)


class ConfigError(ValueError):
    """What came in as configuration is not one; the text says what and where."""


def parse(path: Path) -> dict[str, Any]:
    """The table in a TOML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from error
    return parse_text(text, path)


def parse_text(text: str, path: Path) -> dict[str, Any]:
    """The table in the text of a TOML file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from error


def nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    """{"a": {"b": value}} from a.b."""
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def merge(table: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Lay `other` over `table`. A bare name beside a table of the same thing is the table's name."""
    for key, value in other.items():
        mine = table.get(key)
        if isinstance(mine, dict) and isinstance(value, Mapping):
            merge(mine, value)
        elif isinstance(mine, dict) and isinstance(value, str):
            mine["name"] = value
        elif isinstance(mine, str) and isinstance(value, Mapping):
            table[key] = {"name": mine} | dict(value)
        else:
            table[key] = dict(value) if isinstance(value, Mapping) else value


def check(kind: type[Config], table: Mapping[str, Any]) -> Config:
    """The config that a table describes. Unknown keys and wrong values are refused, each with its path."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    prepared = shorthand(kind, table)
    unknown(kind, prepared)
    try:
        found = TypeAdapter(kind, config=None if is_dataclass(kind) else ConfigDict()).validate_python(prepared)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}: {first['msg']}, got {first['input']!r}") from error
    bounded(found)
    return found


def bounded(config: Any) -> None:
    """Raise for a number that no run could make sense of."""
    for path in everything(type(config)):
        value = config
        for part in path.split("."):
            value = getattr(value, part)
        if value is None or isinstance(value, bool | str):
            continue
        name = path.rpartition(".")[2]
        share = name in SHARES or path.startswith("dropout.")
        least = 0 if share or name not in COUNTS else 1
        if not least <= value < math.inf or (name == "rate" and value == 0):
            raise ConfigError(f"{path} needs to be {'above 0' if name == 'rate' else f'{least} or more'}, got {value}")
        if share and value >= 1:
            raise ConfigError(f"{path} needs to be a share below 1, got {value}")


def shorthand(kind: Any, table: Any) -> Any:
    """A bare string where a part with a name belongs becomes that part: attention = "additive"."""
    if not is_dataclass(kind):
        return table
    names = [each.name for each in fields(kind)]
    if isinstance(table, str) and names and names[0] == "name":
        return {"name": table}
    if not isinstance(table, Mapping):
        return table
    kinds = {each.name: each.type for each in fields(kind)}
    return {key: shorthand(kinds.get(key), value) for key, value in table.items()}


def unknown(kind: Any, table: Any, path: str = "") -> None:
    """Raise for a key that no part has, naming the nearest one that exists."""
    if not is_dataclass(kind) or not isinstance(table, Mapping):
        return
    kinds = {each.name: each.type for each in fields(kind)}
    for key, value in table.items():
        if f"{path}{key}" in REMOVED:
            raise ConfigError(f"there is no setting {path}{key} any more: {REMOVED[path + key]}")
        if key not in kinds:
            near = difflib.get_close_matches(key, kinds, n=1) or difflib.get_close_matches(key, everything(kind), n=1)
            hint = f"did you mean {path}{near[0]}?" if near else f"there are {', '.join(kinds)}"
            raise ConfigError(f"there is no setting {path}{key}; {hint}")
        unknown(kinds[key], value, f"{path}{key}.")


def without_removed(table: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a run directory without the settings that only earlier versions have."""
    parts = {part: dict(value) if isinstance(value, Mapping) else value for part, value in table.items()}
    for path in REMOVED:
        part, _, name = path.partition(".")
        if isinstance(parts.get(part), dict):
            parts[part].pop(name, None)
    return parts


def everything(kind: Any) -> list[str]:
    """Every dotted path of a config, for help and for guessing what was meant."""
    found = []
    for each in fields(kind):
        inner = next((part for part in (each.type, *get_args(each.type)) if is_dataclass(part)), None)
        found += [f"{each.name}.{path}" for path in everything(inner)] if inner else [each.name]
    return found


def write(config: Any) -> str:
    """A config as TOML; what is None is left out."""
    import tomli_w

    return tomli_w.dumps(plain(config))


def plain(config: Any) -> dict[str, Any]:
    """A config as a table."""
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    return {name: plain(value) if is_dataclass(value) else value for name, value in values.items() if value is not None}
