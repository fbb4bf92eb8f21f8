"""Configs from text and back: TOML and dotted overrides, checked where they come in."""

import math
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from regard.components import settle
from regard.config.docs import describe_values
from regard.config.hints import meant_settings, unknown_setting
from regard.config.parameters import read_parameters
from regard.config.quoting import SHOWN, quoted, shortened
from regard.config.section import FIELD
from regard.config.settings import BOUNDS, MAX_INTEGER
from regard.errors import ConfigError
from regard.inputs import open_stream

Config = TypeVar("Config")

COUNTS = {"max_steps", "accumulate_steps", "keep_checkpoints", "max_bad_batches", "record_every", "sequence_samples"}
COUNTS |= {"vocab_size", "min_frequency", "max_source_length", "max_target_length", "max_question_length", "samples"}
COUNTS |= {"batch_tokens", "batch_size", "batch_pixels", "height", "width", "max_frames", "max_bytes", "max_records"}
COUNTS |= {"size", "hidden_size", "embedding_size", "self_attention_size", "feedforward_size", "kernel_size", "map_size"}
COUNTS |= {"projection_size", "glimpse_size", "glimpse_scales", "episodes", "eval_episodes", "stride", "depth", "heads"}
COUNTS |= {"layers", "decoder_layers", "text_layers", "question_layers", "hops", "queries", "rerank_top_k"}
COUNTS |= {"beam", "beam_groups", "max_length", "mbr_candidates"}
"""Settings that are at least 1, wherever they stand; every other number is at least 0."""
SHARES = {"label_smoothing", "ema_decay", "soft_attention_rate"}
"""Settings below 1, as all dropouts are."""
POSITIVE = {"learning_rate", "max_epochs", "window_ms", "hop_ms", "max_seconds", "batch_seconds", "excerpt_seconds"}
"""Settings above 0."""
BYTES = 1 << 16
"""The most bytes of a TOML file: a config of every setting takes a tenth. """
DOTS = 200
"""The most dots of a line of TOML: a key of n parts takes the parser n^2 steps."""


def read(kind: type[Config], *sources: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """A config from its defaults, TOML files, tables and overrides ("train.learning_rate=0.01"), later ones winning."""
    table = plain(kind())
    for source in sources:
        merge(table, parse(source) if isinstance(source, Path) else source)
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not path:
            raise ConfigError(f"{quoted(override)} needs the form part.key=value")
        merge(table, nested(path.split("."), text))
    return check(kind, table)


def parse(path: Path) -> dict[str, Any]:
    """The table in a TOML file."""
    try:
        return parse_text(_content(path).decode("utf-8"), path)
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        if isinstance(error, UnicodeDecodeError):
            raise ConfigError(
                f"{path} is not a TOML file: byte {error.start + 1} is not UTF-8; convert it to UTF-8"
            ) from error
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _content(path: Path) -> bytes:
    """The bytes of a file or a pipe, read no further than any config goes."""
    with open_stream(path) as file:
        content = file.read(BYTES + 1)
    if len(content) > BYTES:
        raise ConfigError(f"{path} has more than {BYTES:,} bytes, the most of a TOML file of settings; is it another file?")
    return content


def parse_text(text: str, path: Path) -> dict[str, Any]:
    """The table in the text of a TOML file."""
    if any(line.count(".") > DOTS for line in text.splitlines()):
        raise ConfigError(f"{path} is not a TOML file of settings: it has a line with more than {DOTS} dots")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: {shortened(str(error), 3 * SHOWN)}") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is not a TOML file of settings: its lists or tables are nested too deep") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not a TOML file of settings: it has a date or a number that is too large") from error


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
    from pydantic import ValidationError

    if isinstance(table.get("model"), Mapping):
        table = {**table, "model": settle(table["model"])}
    prepared = shorthand(kind, table)
    if isinstance(prepared, Mapping):
        refuse_unknown(kind, prepared)
        prepared = type_parameters(kind, prepared)
    try:
        checked_config: Config = _adapter(cast(Hashable, kind)).validate_python(prepared)
    except ValidationError as error:
        first = error.errors()[0]
        path = [str(part) for part in first["loc"]]
        where = shortened(".".join(path)) or "a config"
        raise ConfigError(f"{where} needs to be {describe_values(kind, path)}, got {quoted(first['input'])}") from error
    bounded(checked_config)
    return checked_config


@cache
def _adapter(kind: Any) -> Any:
    """Validator of configs of a kind, cached since it takes longer to build than to use."""
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=None if is_dataclass(kind) else ConfigDict())


def bounded(config: Any) -> None:
    """Raise for a number that no run could make sense of."""
    for path in everything(type(config)):
        value = config
        for part in path.split("."):
            value = getattr(value, part)
        if isinstance(value, str):
            encodable(path, value)
        if value is None or isinstance(value, bool | str):
            continue
        name = path.rpartition(".")[2]
        share = name in SHARES or path.startswith("dropout.")
        least = 0 if share or name not in COUNTS else 1
        if not least <= value < math.inf or (name in POSITIVE and value == 0):
            raise ConfigError(
                f"{path} needs to be {'above 0' if name in POSITIVE else f'{least} or more'}, got {quoted(value)}"
            )
        most = BOUNDS.get(name, MAX_INTEGER if isinstance(value, int) else math.inf)
        if value > most:
            raise ConfigError(f"{path} needs to be {most:,} or less, got {quoted(value)}")
        if share and value >= 1:
            raise ConfigError(f"{path} needs to be a share below 1, got {value}")


def encodable(path: str, text: str) -> None:
    """Raise for a text that config.toml cannot hold, such as a file name with bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{path} needs to be UTF-8, since config.toml has it in, got {text!a}; give the file another name, or link to it"
        ) from error


def shorthand(kind: Any, table: Any) -> Any:
    """A bare string where a part with a name belongs becomes that part: attention = "additive"."""
    if not is_dataclass(kind):
        return table
    names = [field.name for field in fields(kind)]
    if isinstance(table, str) and names and names[0] == "name":
        return {"name": table}
    if not isinstance(table, Mapping):
        return table
    kinds = {field.name: field.type for field in fields(kind)}
    if FIELD in kinds:  # what is no setting of the part is a parameter of a stage
        own = {key: value for key, value in table.items() if key in kinds and key != FIELD}
        rest = {key: value for key, value in table.items() if key not in own and key != FIELD}
        nested = table.get(FIELD, {})  # as dataclasses.asdict has them
        rest = ({**nested} if isinstance(nested, Mapping) else {FIELD: nested}) | rest
        return own | ({FIELD: rest} if rest else {})
    return {key: shorthand(kinds.get(key), value) for key, value in table.items()}


def type_parameters(kind: Any, table: Mapping[str, Any], group: str = "", paths: Sequence[str] = ()) -> dict[str, Any]:
    """The table with each parameter of a stage as its stage types it; raises for one that no stage has."""
    paths = paths or everything(kind)
    typed = dict(table)
    for field in fields(kind):
        part = typed.get(field.name)
        if not is_dataclass(field.type) or not isinstance(part, Mapping):
            continue
        path = f"{group}{field.name}."
        typed[field.name] = type_parameters(field.type, part, path, paths)
        if part.get(FIELD) and isinstance(name := part.get("name", _default_name(field)), str):
            typed[field.name][FIELD] = read_parameters(name, part[FIELD], path, paths)
    return typed


def _default_name(field: Any) -> Any:
    """The name of a part where nobody gives one."""
    default = field.default if field.default is not MISSING else field.default_factory()
    return getattr(default, "name", None)


def refuse_unknown(kind: Any, table: Mapping[str, Any], group: str = "", paths: Sequence[str] = ()) -> None:
    """Raise for a key that no part has, and say which setting is meant."""
    paths = paths or everything(kind)
    kinds = {field.name: field.type for field in fields(kind)} if is_dataclass(kind) else {}
    for key, value in table.items():
        path = f"{group}{shortened(key)}"
        if is_dataclass(part := kinds.get(key)) and not isinstance(value, Mapping) and "name" not in _names(part):
            raise ConfigError(unknown_setting(path, paths))
        if key in kinds:
            if isinstance(value, Mapping) and key != FIELD:
                refuse_unknown(kinds[key], value, f"{path}.", paths)
        elif key == "name" and group:
            if is_dataclass(kind):  # a group that has a name of its own may be set by it, and this one has none
                raise ConfigError(unknown_setting(group[:-1], paths))
        else:
            inner = _first_path(path, value)
            raise ConfigError(unknown_setting(inner if meant_settings(inner, paths) else path, paths))


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def _first_path(path: str, value: Any) -> str:
    """Path of the first setting in a table of tables."""
    while isinstance(value, Mapping) and value:
        key, value = next(iter(value.items()))
        path = f"{path}.{shortened(key)}"
    return path


def everything(kind: Any) -> list[str]:
    """Every dotted path of a config, for help and for guessing what was meant."""
    settings = []
    for field in fields(kind):
        if field.name == FIELD:
            continue
        inner = next((part for part in (field.type, *get_args(field.type)) if is_dataclass(part)), None)
        settings += [f"{field.name}.{path}" for path in everything(inner)] if inner else [field.name]
    return settings


def write(config: Any) -> str:
    """A config as TOML; what is None is left out."""
    import tomli_w

    return tomli_w.dumps(plain(config))


def plain(config: Any) -> dict[str, Any]:
    """A config as a table, the parameters of stages beside the name of their attention."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    values |= values.pop(FIELD, {})
    return {name: plain(value) if is_dataclass(value) else value for name, value in values.items() if value is not None}
