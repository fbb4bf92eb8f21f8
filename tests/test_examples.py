"""The examples run, on fewer steps than a user would take."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_training_in_python_takes_twenty_lines_and_works():
    script = EXAMPLES / "train_in_python.py"
    code = [
        line
        for line in script.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("import", "from", '"""'))
    ]
    assert len(code) <= 20
    done = subprocess.run([sys.executable, str(script), "3"], capture_output=True, text=True, timeout=110, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "3,600 of 3,600 records" in done.stderr
    assert done.stdout.splitlines()[2].split()[-4:] == ["Tom", "chases", "Jerry", "<eos>"]


def test_the_recipe_of_tatoeba_wants_to_know_what_varies():
    done = subprocess.run(
        ["bash", str(EXAMPLES / "tatoeba.sh"), "out"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 2
    assert "tatoeba.sh OUT --vary SETTING=VALUE" in done.stderr


@pytest.mark.parametrize(
    ("recipe", "arguments", "wanted"),
    [
        ("multi30k", ["de-en", "huge", "out"], "none, additive or transformer"),
        ("pronounce", ["fre", "huge", "1", "out"], "recurrent or transformer"),
        ("nettalk", ["huge", "out"], "free or guided"),
        ("visual", ["huge", "out"], "emoji or digits"),
    ],
)
def test_a_recipe_names_its_models(recipe, arguments, wanted, tmp_path):
    done = subprocess.run(
        ["bash", str(EXAMPLES / f"{recipe}.sh"), *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "REGARD_DATA": "x"},
    )
    assert done.returncode == 2
    assert wanted in done.stderr


@pytest.mark.parametrize("recipe", sorted(EXAMPLES.glob("*.sh")), ids=lambda path: path.stem)
def test_a_recipe_without_its_data_says_which_folder_it_wants(recipe, tmp_path):
    done = subprocess.run(
        ["bash", str(recipe), *["transformer"] * 5],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1
    assert "name the folder that holds" in done.stderr


@pytest.mark.parametrize("recipe", sorted(EXAMPLES.glob("*.sh")), ids=lambda path: path.stem)
def test_a_recipe_that_is_told_nothing_says_what_it_wants(recipe, tmp_path):
    done = subprocess.run(
        ["bash", str(recipe)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "REGARD_DATA": "x"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
    assert f"examples/{recipe.name} " in done.stderr
