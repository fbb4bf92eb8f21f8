"""The guide to training names settings and options that exist."""

import re
import shlex
from pathlib import Path

import pytest

from regard.api import check_configs
from regard.cli import backtranslate
from regard.cli.train import read_config

GUIDE = (Path(__file__).parent.parent / "docs" / "training.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]
TRAININGS = [command for command in COMMANDS if command[1] == "train"]


@pytest.mark.parametrize("command", TRAININGS, ids=" ".join)
def test_a_training_of_the_guide_has_settings_that_exist_and_go_together(command):
    _, _, task, *options = command
    options = options[options[0] == "run/config.toml" :]
    place = options.index("--out")
    check_configs(task, [read_config(task, None, options[:place] + options[place + 2 :])])


def test_the_other_command_of_the_guide_has_the_options_it_is_shown_with():
    [command] = [each for each in COMMANDS if each not in TRAININGS]
    assert command[:2] == ["regard", "backtranslate"]
    source = Path(backtranslate.__file__).read_text(encoding="utf-8")
    for option in re.findall(r"--(\w+)", " ".join(command)):
        assert re.search(rf"^    {option}: Annotated", source, re.MULTILINE), option


def test_every_setting_that_the_guide_names_exists():
    from regard.config import everything
    from regard.tasks import TextConfig

    named = set(re.findall(r"`((?:train|data|model|search)\.[a-z_]+)[`=]", GUIDE))
    assert named
    assert named <= set(everything(TextConfig))
