"""Settings of a task on the page of `regard show`: defaults, values and descriptions, all of them or those with a word."""

import difflib
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from regard import registry
from regard.cli._terminal import find_width, wrap
from regard.cli.show.table import paragraphs, title
from regard.config.docs import Setting, describe_settings
from regard.config.hints import meant_settings
from regard.errors import ConfigError

WIDTH = 104
"""Line length of the settings in a file or a pipe."""
INDENT = 4 * " "


def write_settings(name: str, words: Sequence[str] = ()) -> str:
    """A task and its settings; with `words` the settings alone whose name or description has them all."""
    module = registry.load("tasks", name)
    settings, config = list(describe_settings(module.Config)), module.Config()
    if words:
        return "\n".join(format_setting(config, setting, "") for setting in select(name, settings, words))
    docstring = "\n\n".join(
        paragraph if "\n " in paragraph else wrap(paragraph.replace("\n", " "), find_width())
        for paragraph in (inspect.getdoc(module) or "").split("\n\n")
    )
    heading = wrap("Settings with their defaults; a dash is None", find_width())
    lines = "\n".join(format_setting(config, setting, INDENT) for setting in settings)
    return paragraphs(title(f"{name} (tasks)"), docstring, f"{heading}\n\n{lines}")


def select(name: str, settings: Iterable[Setting], words: Sequence[str]) -> list[Setting]:
    """The settings that match every word by a part of their name or description, or by their name in another toolkit."""
    settings = list(settings)
    paths = [setting.path.removesuffix(".name") for setting in settings]
    meant = {word: set(meant_settings(word, paths)) for word in words}
    matching = [
        setting
        for setting, path in zip(settings, paths, strict=True)
        if all(word.lower() in f"{path} {setting.meaning}".lower() or path in meant[word] for word in words)
    ]
    if not matching:
        names = {path.rpartition(".")[2]: path for path in paths}
        near = difflib.get_close_matches(words[0], names, n=1)
        hint = f"did you mean {names[near[0]]}?" if near else f"regard show {name} lists all of them"
        raise ConfigError(f"no setting of the task {name} has {' '.join(words)!r} in its name or its description; {hint}")
    return sorted(matching, key=lambda setting: not any(is_named(setting.path, word, meant[word]) for word in words))


def is_named(path: str, word: str, meant: set[str]) -> bool:
    """True if a word is a part of a setting's name, or its name in another toolkit."""
    return word.lower() in path or path.removesuffix(".name") in meant


def format_setting(config: Any, setting: Setting, indent: str) -> str:
    """A setting with its default and its values, and its description below."""
    width = find_width() or WIDTH
    values = f"   ({', '.join(setting.values)})" if setting.values else ""
    deeper = indent + INDENT
    line = wrap(f"{setting.path} = {find_default(config, setting.path)}{values}", width, indent, deeper)
    return f"{line}\n{wrap(setting.meaning, width, deeper, deeper)}" if setting.meaning else line


def find_default(config: Any, path: str) -> str:
    """The value at a dotted path as text; a dash for None."""
    for part in path.split("."):
        config = getattr(config, part)
    return "-" if config is None else str(config).lower() if isinstance(config, bool) else str(config)
