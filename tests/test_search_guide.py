"""The guide to searching names every setting, and none that is not there."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from regard.api import check_configs
from regard.cli._search_options import PART, split_arguments
from regard.cli.train import read_config
from regard.config import Search

GUIDE = (Path(__file__).parent.parent / "docs" / "search.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]


def test_every_setting_of_the_search_is_named_and_exists():
    named = set(re.findall(r"search\.([a-z_]+)", GUIDE)) - {"md", "txt"}
    assert named == {each.name for each in fields(Search)}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_settings_of_a_command_make_sense(command):
    assert command[0] == "regard"
    assert command[1] in ("predict", "evaluate")
    _, given = split_arguments(None, [each for each in command if each.startswith(f"--{PART}")], command[1])
    check_configs("translate", [read_config("translate", None, [f"--{each}" for each in given])])
