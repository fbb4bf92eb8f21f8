"""What is varied, and what goes with some of its values.

    --vary model.attention=none,additive,mechanisms        one setting and its values
    --vary model.decoder=every                             a second one: every pair is trained
    --with "model.decoder=transformer: model.encoder=transformer model.heads=4"

Among the values, `every` stands for all that the setting can be and the name of a kind (`regard list` has them) for all of
that kind. What follows the colon of --with is set where what precedes it holds.
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
"""The settings that are words from `regard list`, and of which kinds the words may be."""
OUTPUTS = ("model.output", "model.output.name")
"""Those that are the name of an output layer."""
EXAMPLE = '--with "model.decoder=transformer: model.encoder=transformer model.heads=4"'


class Varied(NamedTuple):
    """A setting and the values that it takes."""

    setting: str
    values: tuple[str, ...]


class Along(NamedTuple):
    """Settings ("model.heads=4") that go with some of the varied values."""

    when: tuple[Varied, ...]
    settings: tuple[str, ...]

    def holds(self, chosen: Mapping[str, str]) -> bool:
        """Whether these values are ones that the settings go with."""
        return all(chosen[each.setting] in each.values for each in self.when)


def varied(texts: Sequence[str], kind: type[Any]) -> list[Varied]:
    """Every --vary of a command, for a task whose config is of this kind."""
    found = [one(text, kind, "--vary") for text in texts]
    for place, each in enumerate(found):
        if each.setting == "train.seed":
            raise ConfigError("compare sets train.seed itself: --seeds N trains each kind N times")
        if each.setting in [other.setting for other in found[:place]]:
            raise ConfigError(f"--vary names {each.setting} twice; put all its values behind one =")
    return found


def along(texts: Sequence[str], all_varied: Sequence[Varied], kind: type[Any]) -> list[Along]:
    """Every --with of a command."""
    known = {each.setting: each.values for each in all_varied}
    found = []
    for text in texts:
        before, colon, after = text.partition(": ")
        when, settings = words(before), words(after)
        if not colon or not when or not settings or not all("=" in each for each in (*when, *settings)):
            raise ConfigError(f"--with needs SETTING=VALUE: SETTING=VALUE ..., got {text!r}; for example {EXAMPLE}")
        conditions = tuple(one(each, kind, "--with") for each in when)
        for each in conditions:
            met(each, known)
        for setting in (each.partition("=")[0] for each in settings):
            if setting in {*known, "train.seed"}:
                raise ConfigError(f"--with {text!r} sets {setting}, which compare varies itself; leave it out")
        found.append(Along(conditions, tuple(settings)))
    return found


def one(text: str, kind: type[Any], option: str) -> Varied:
    """SETTING=VALUE,VALUE as it was meant: groups become their members, and each value counts once."""
    setting, equals, values = text.partition("=")
    given = values.split(",")
    if not equals or not setting or not all(given):
        raise ConfigError(f"compare needs {option} SETTING=VALUE,VALUE with no value empty, got {text!r}")
    return Varied(setting, tuple(dict.fromkeys(each for value in given for each in expanded(setting, value, kind))))


def expanded(setting: str, value: str, kind: type[Any]) -> list[str]:
    """The values that one word stands for: itself, unless it is `every` or a kind."""
    kinds = NAMED.get(setting, ())
    if value in kinds:
        return members(value)
    if value != EVERY:
        return [value]
    if kinds:
        none = [] if setting == "model.self_attention" else ["none"]
        return [*none, *(name for each in kinds for name in members(each))]
    found = registry.names("output_heads") if setting in OUTPUTS else choices(kind, setting)
    if not found:
        raise ConfigError(f"{setting} has no list of values, so --vary {setting}={EVERY} means nothing; name its values")
    return found


def members(kind: str) -> list[str]:
    """The names of a kind that are a whole attention alone and no other's: softmax and everywhere are every score's own."""
    import inspect

    from regard.attention.module import Attention
    from regard.models.attention_factory import split_name

    usual = inspect.signature(Attention).parameters.get(kind) if kind in ("normalise", "scope") else None
    found = []
    for name in registry.names(kind):
        if usual is not None and name == usual.default:
            continue
        try:
            split_name(name)
        except ValueError:  # it needs to be told more than its name
            continue
        found.append(name)
    return found


def choices(kind: Any, setting: str) -> list[str]:
    """What a setting of a config can be, where that is a short list."""
    for name in setting.split("."):
        known = {each.name: each.type for each in fields(kind)} if is_dataclass(kind) else {}
        kind = known.get(name)
    if kind is bool:
        return ["false", "true"]
    literals = [each for each in (kind, *get_args(kind)) if get_origin(each) is Literal]
    return [str(value) for each in literals for value in get_args(each)]


def met(condition: Varied, known: Mapping[str, Sequence[str]]) -> None:
    """Raise for a condition that no combination could meet."""
    setting, values = condition
    if setting not in known:
        raise ConfigError(f"--with asks for {setting}, which nothing varies; --vary names {', '.join(known)}")
    for value in values:
        if value not in known[setting]:
            near = difflib.get_close_matches(value, known[setting], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known[setting])}"
            raise ConfigError(f"--with asks for {setting}={value}, which --vary does not name; {hint}")


def words(text: str) -> list[str]:
    """Words between spaces; quotes keep a space inside one."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--with {text!r} cannot be read: {error}") from error
