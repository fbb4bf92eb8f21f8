"""Hostile settings (F5): TOML, JSON lines and overrides of the command line end in a config or in one short sentence."""

import json
import random
import re
import string
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard import config as configuration
from regard import tasks
from regard.api import read_config
from regard.cli._search_options import split_arguments
from regard.cli.train import settings
from regard.config.parse import merge, nested
from regard.data.lines import Line
from regard.data.table import read as table
from regard.decoding.constraints.spec import parse_spec as wish
from regard.errors import ConfigError, DataError

pytestmark = pytest.mark.unhooked
NAMES = ["translate", "caption", "classify", "detect", "retrieve", "vqa"]
CONFIGS = {name: tasks.find(name).Config for name in NAMES}
PATHS = {name: configuration.everything(kind) for name, kind in CONFIGS.items()}
HOSTILE = [
    "__class__",
    "__init__",
    "__dict__",
    "_target_",
    "auto_map",
    "os.system",
    "task",
    "name",
    "columns",
    "budget",
    "",
    " ",
]
HOSTILE += [
    "a\nb",
    "\x1b[31m",
    "\u202e",
    "😀",
    "é" * 300,
    "x" * 100_000,
    "0",
    "-1",
    "..",
    "data.",
    ".data",
    "train.train.train",
]
NUMBERS = [
    "0",
    "-1",
    "1e400",
    "-inf",
    "inf",
    "nan",
    "1e-400",
    "9" * 30,
    "9" * 5000,
    "0x" + "f" * 5000,
    "1_000",
    "true",
    "2**8",
]
NUMBERS += ["9223372036854775807", "9223372036854775808", "0.5", "1.0", "-0.0", "0b1", "٣", "1e3"]


def path(rng: random.Random, name: str) -> list[str]:
    """A setting that there is, most of the time, or one that looks like it."""
    parts = rng.choice(PATHS[name]).split(".")
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        place = rng.randrange(len(parts) + 1)
        way = rng.randrange(3)
        if way == 0:
            parts.insert(place, rng.choice(HOSTILE))
        elif way == 1 and parts:
            parts[place - 1] = rng.choice((rng.choice(HOSTILE), parts[place - 1][::-1], parts[place - 1] + "s"))
        else:
            parts = parts[:place] or ["data"]
    return parts


def value(rng: random.Random, depth: int = 0) -> Any:
    """A value of any kind."""
    way = rng.randrange(9 if depth < 4 else 6)
    if way < 3:
        return rng.choice(HOSTILE + NUMBERS)
    if way == 3:
        return rng.choice((0, 1, -1, 2**63 - 1, 2**63, -(2**70), 10**400, True, False))
    if way == 4:
        return rng.choice((0.5, -1.0, 1e308, float("inf"), float("nan")))
    if way == 5:
        return "".join(rng.choices(string.printable + "汤姆\u0000\ud7ff", k=rng.choice((1, 20, 3000))))
    if way == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice([*HOSTILE, "name", "size"]): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def toml(rng: random.Random, name: str, folder: Path) -> None:
    """A file of settings: of tables, or of text that no writer would write."""
    import tomli_w

    file = folder / "hostile.toml"
    if rng.random() < 0.5:
        content = "".join(rng.choice(LINES)(rng, name) for _ in range(rng.choice((1, 2, 5)))).encode("utf-8", "replace")
    else:
        found: dict[str, Any] = {}
        for _ in range(rng.choice((1, 1, 3))):
            merge(found, nested(path(rng, name), value(rng)))
        content = tomli_w.dumps(found).encode()
    if rng.random() < 0.2:
        changed = bytearray(content or b"\0")
        for _ in range(rng.choice((1, 5))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        content = bytes(changed)
    file.write_bytes(content)
    read_config(name, file)


Form = Callable[[random.Random, str], str]
LINES: list[Form] = [
    lambda rng, name: f"{'.'.join(path(rng, name))} = {rng.choice(NUMBERS)}\n",
    lambda rng, name: f"[{'.'.join(path(rng, name))}]\nname = '{rng.choice(NUMBERS)}'\n",
    lambda rng, name: f"[[{rng.choice(PATHS[name])}]]\n",
    lambda rng, name: f"{rng.choice(PATHS[name])} = {'[' * rng.choice((3, 300, 60_000))}\n",
    lambda rng, name: f"{rng.choice(PATHS[name])} = {'[' * 60}{']' * 60}\n",
    lambda rng, name: f"{rng.choice(PATHS[name])} = {'{a = ' * rng.choice((3, 5_000))}\n",
    lambda rng, name: f"{'a.' * rng.choice((9, 150, 20_000))}a = 1\n",
    lambda rng, name: f"{rng.choice(PATHS[name])} = '''{'x' * rng.choice((9, 1_000, 70_000))}'''\n",
    lambda rng, name: f"{rng.choice(PATHS[name])} = 19{rng.randrange(99)}-{rng.randrange(20)}-{rng.randrange(40)}\n",
    lambda rng, name: f"{'k' * rng.choice((9, 60_000))} = 1\n",
    lambda rng, name: "# a remark\r\n",
]


def override(rng: random.Random, name: str, folder: Path) -> None:
    """Options as they stand on the command line."""
    options = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        given = rng.choice(HOSTILE + NUMBERS) if rng.random() < 0.9 else "y" * 10_000_000
        options += [
            rng.choice((f"--{'.'.join(path(rng, name))}={given}", given, "--", "--=", f"--{given}", "--data.train", ""))
        ]
    if rng.random() < 0.2:
        split_arguments(None, options, "predict")
    configuration.read(CONFIGS[name], overrides=settings(options))


def given(rng: random.Random, name: str, folder: Path) -> None:
    """A table that is Python's own, as a program hands it over."""
    found: dict[str, Any] = {}
    for _ in range(rng.choice((1, 2, 4))):
        merge(found, nested(path(rng, name), value(rng)))
    configuration.check(CONFIGS[name], found)


def jsonl(rng: random.Random, name: str, folder: Path) -> None:
    """A line of constraints, or of a table."""
    text = json.dumps(rng.choice((value(rng), {rng.choice(("prefix", "include", "exclude", "text")): value(rng)})))
    deep = rng.choice(("[", '{"prefix":', '{"include":[', "-")) * rng.choice((5, 100_000))
    text = rng.choice(
        (text, text[: rng.randrange(len(text) + 1)], deep, "9" * 100_000, f'["a", {"9" * 9000}]', text.replace('"', "'"))
    )
    if rng.random() < 0.5:
        wish(Line(text, "c.jsonl:1"))
    else:
        file = folder / "hostile.jsonl"
        file.write_text(text + "\n")
        list(table(file))


WAYS = [toml, toml, override, override, given, jsonl]
FIELD = re.compile(
    r"there is no setting \S|[a-z_]+(\.[a-z_0-9]+)*(\.|:| needs to be)|.*hostile\.\w+|c\.jsonl:1|.* is no setting|--.* needs a value"
    r"|.* needs the form part.key=value|predict has no option --|predict takes one INPUT"
)


def run(tmp_path: Path, first: int, count: int) -> None:
    fallen, refused = [], 0
    for seed in range(first, first + count):
        rng = random.Random(seed)
        way, name, began = rng.choice(WAYS), rng.choice(NAMES), time.process_time()
        try:
            way(rng, name, tmp_path)
        except (ConfigError, DataError) as error:
            refused += 1
            said = str(error)
            if len(said) > 3000 or "\n" in said or not FIELD.match(said):
                fallen.append(f"seed {seed} ({way.__name__}): says {said[:300]!r}")
        except Exception as error:
            fallen.append(f"seed {seed} ({way.__name__}): {type(error).__name__}: {str(error)[:200]}")
        if time.process_time() - began > 3:
            fallen.append(f"seed {seed} ({way.__name__}): took {time.process_time() - began:.1f} seconds")
    assert fallen == []
    assert refused > count / 2


def test_a_thousand_hostile_configs_are_refused_with_their_place(tmp_path):
    run(tmp_path, 0, 1000)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_twenty_thousand_hostile_configs_are_refused_with_their_place(tmp_path):
    run(tmp_path, 1000, 20_000)
