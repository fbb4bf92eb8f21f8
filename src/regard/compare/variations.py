"""Varied settings of a comparison, and settings that accompany some of their values.

    --vary model.attention=none,additive,mechanisms        one setting and its values
    --vary model.decoder=every                             a second one: every pair is trained
    --with "model.decoder=transformer: model.encoder=transformer model.heads=4"

The value `every` stands for all values of the setting, and the name of a kind (`regard list` has them) for all of that
kind. The settings after the colon of --with apply where the condition before it holds.
"""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, get_args, get_origin

from regard import registry
from regard.errors import ConfigError

EVERY = "every"
NAMED = {
    "model.attention": ("mechanisms", "score", "normalise", "scope"),
    "model.attention.name": ("mechanisms", "score", "normalise", "scope"),
    "model.self_attention": ("score", "normalise", "scope"),
}
"""Settings whose values are names from `regard list`, with their kinds."""
OUTPUTS = ("model.output", "model.output.name")
"""Settings whose value is the name of an output head."""
EXAMPLE = '--with "model.decoder=transformer: model.encoder=transformer model.heads=4"'


class Varied(NamedTuple):
    """A setting and its values."""

    setting: str
    values: tuple[str, ...]


class Conditional(NamedTuple):
    """Settings ("model.heads=4") that accompany some of the varied values."""

    when: tuple[Varied, ...]
    settings: tuple[str, ...]

    def holds(self, combination: Mapping[str, str]) -> bool:
        """True where the condition holds for a combination."""
        return all(combination[varied.setting] in varied.values for varied in self.when)


def parse_varied(texts: Sequence[str], kind: type[Any]) -> list[Varied]:
    """Parse all --vary options, for a config of this class."""
    varied_settings = [parse_setting(text, kind, "--vary") for text in texts]
    for place, entry in enumerate(varied_settings):
        if entry.setting == "train.seed":
            raise ConfigError("compare sets train.seed itself: --seeds N trains each kind N times")
        if entry.setting in [other.setting for other in varied_settings[:place]]:
            raise ConfigError(f"--vary names {entry.setting} twice; put all its values behind one =")
    return varied_settings


def parse_conditional(texts: Sequence[str], varied_settings: Sequence[Varied], kind: type[Any]) -> list[Conditional]:
    """Parse all --with options."""
    known = {varied_setting.setting: varied_setting.values for varied_setting in varied_settings}
    conditionals = []
    for text in texts:
        before, colon, after = text.partition(": ")
        when, settings = split_words(before), split_words(after)
        if not colon or not when or not settings or not all("=" in option for option in (*when, *settings)):
            raise ConfigError(f"--with needs SETTING=VALUE: SETTING=VALUE ..., got {text!r}; for example {EXAMPLE}")
        conditions = tuple(parse_setting(varied, kind, "--with") for varied in when)
        for condition in conditions:
            check_condition(condition, known)
        for setting in (override.partition("=")[0] for override in settings):
            if setting in {*known, "train.seed"}:
                raise ConfigError(f"--with {text!r} sets {setting}, which compare varies itself; leave it out")
        conditionals.append(Conditional(conditions, tuple(settings)))
    return conditionals


def parse_setting(text: str, kind: type[Any], option: str) -> Varied:
    """Parse SETTING=VALUE,VALUE: kinds are replaced by their members, and duplicates removed."""
    setting, equals, values = text.partition("=")
    parts = values.split(",")
    if not equals or not setting or not all(parts):
        raise ConfigError(f"compare needs {option} SETTING=VALUE,VALUE with no value empty, got {text!r}")
    return Varied(
        setting, tuple(dict.fromkeys(expanded for value in parts for expanded in expand_value(setting, value, kind)))
    )


def expand_value(setting: str, value: str, kind: type[Any]) -> list[str]:
    """Values of one word: itself, unless it is `every` or a kind."""
    kinds = NAMED.get(setting, ())
    if value in kinds:
        return members(value)
    if value != EVERY:
        return [value]
    if kinds:
        none = [] if setting == "model.self_attention" else ["none"]
        return [*none, *(name for kind in kinds for name in members(kind))]
    expanded = registry.names("output_heads") if setting in OUTPUTS else choices(kind, setting)
    if not expanded:
        raise ConfigError(f"{setting} has no list of values, so --vary {setting}={EVERY} means nothing; name its values")
    return expanded


def members(kind: str) -> list[str]:
    """Names of a kind that define an attention alone; softmax and everywhere, the defaults, are left out."""
    import inspect

    from regard.attention.module import Attention
    from regard.models.attention_factory import split_name

    usual = inspect.signature(Attention).parameters.get(kind) if kind in ("normalise", "scope") else None
    usable = []
    for name in registry.names(kind):
        if usual is not None and name == usual.default:
            continue
        try:
            split_name(name)
        except ValueError:  # it needs options
            continue
        usable.append(name)
    return usable


def choices(kind: Any, setting: str) -> list[str]:
    """Possible values of a setting with a short list of them."""
    for name in setting.split("."):
        known = {field.name: field.type for field in fields(kind)} if is_dataclass(kind) else {}
        kind = known.get(name)
    if kind is bool:
        return ["false", "true"]
    literals = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
    return [str(value) for literal in literals for value in get_args(literal)]


def check_condition(condition: Varied, known: Mapping[str, Sequence[str]]) -> None:
    """Raise for a condition that no combination satisfies."""
    setting, values = condition
    if setting not in known:
        raise ConfigError(f"--with asks for {setting}, which nothing varies; --vary names {', '.join(known)}")
    for value in values:
        if value not in known[setting]:
            near = difflib.get_close_matches(value, known[setting], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known[setting])}"
            raise ConfigError(f"--with asks for {setting}={value}, which --vary does not name; {hint}")


def split_words(text: str) -> list[str]:
    """Split a text at spaces, with quotes as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--with {text!r} cannot be read: {error}") from error
