"""The guide to choosing an attention runs, builds and names what there is, and the READMEs leave nothing out."""

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from regard import registry
from regard.api import check_configs
from regard.cli.train import read_config

TOP = Path(__file__).parent.parent
GUIDE = (TOP / "docs" / "attention.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]


def configs(command):
    """What a command would train: one config, or one for each value of --vary."""
    _, _, task, *options = command
    values = [""]
    if "--vary" in options:
        place = options.index("--vary")
        setting, _, varied = options[place + 1].partition("=")
        values = [f"--{setting}={value}" for value in varied.split(",")]
        del options[place : place + 2]
    place = options.index("--out")
    del options[place : place + 2]
    return task, [read_config(task, None, [*options, *filter(None, [value])]) for value in values]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_of_the_guide_has_settings_that_exist_and_count(command):
    assert command[:2] in (["regard", "train"], ["regard", "compare"])
    task, settings = configs(command)
    assert settings
    check_configs(task, settings)


def test_every_name_in_the_guide_s_table_is_an_attention_that_can_be_trained():
    table = GUIDE.split("## By need")[1].split("## ")[0]
    names = [
        name for row in table.splitlines() if row.startswith("| ") for name in re.findall(r"`([^`-]+)`", row.split("|")[2])
    ]
    assert len(names) > 15
    for name in names:
        check_configs("reverse", [read_config("reverse", None, [f"--model.attention={name}"])])


@pytest.mark.parametrize("kind", ["score", "normalise", "mechanisms", "visual"])
def test_the_guide_has_a_word_for_everything(kind):
    prose = re.sub(r"```.*?```", "", GUIDE, flags=re.DOTALL)
    said = {part for word in re.findall(r"`([^`]+)`", prose) for part in word.split("+")}
    assert set(registry.names(kind)) <= said


PRINTED = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", GUIDE, re.DOTALL)


def test_all_of_the_guide_s_code_says_what_it_prints():
    assert len(PRINTED) == GUIDE.count("```python\n") == GUIDE.count("```text\n") == 2


@pytest.mark.parametrize(("code", "expected"), PRINTED, ids=["modules", "rows"])
def test_the_guide_s_code_prints_what_it_says(code, expected):
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == expected


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
@pytest.mark.parametrize("kind", registry.FINDABLE)
def test_a_readme_names_everything_there_is(name, kind):
    rows = re.findall(rf"^\|[^|]*\b{kind}\b[^|]*\|(.*)\|$", (TOP / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 1
    named = set(re.findall(r"[a-z0-9_]+", rows[0]))
    assert set(registry.names(kind)) <= named


def test_the_component_of_the_guide_fulfils_its_contracts(tmp_path):
    from regard.components import find_class, read_source
    from regard.testing import check_component

    [text] = re.findall(r"```py\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "my_scores.py"
    path.write_text(text)
    outcomes = list(check_component(find_class(read_source(path), "L1")))
    assert len(outcomes) > 10
    assert [outcome for outcome in outcomes if not outcome.passed] == []
