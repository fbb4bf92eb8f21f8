import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

SCRIPTS = Path(__file__).parents[3] / "examples" / "pictures"
NAMES = {"crohme": "crohme", "bccd": "bccd", "easy_vqa": "easy-vqa", "emoji": "emoji"}


@pytest.fixture
def started(script, monkeypatch, capsys):
    """How a script ends that is given these arguments: its status or last words, and what it wrote to standard error."""

    def start(name, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
        return ended.value.code, capsys.readouterr().err

    return start


def test_a_script_runs_as_a_command():
    command = [sys.executable, str(SCRIPTS / "crohme.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, encoding="utf-8")
    assert done.returncode == 2
    assert done.stderr == f"usage: REGARD_DATA=FOLDER python {SCRIPTS / 'crohme.py'} OUT\n"


def test_there_is_a_test_of_every_script():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {*NAMES, "folder", "mnist", "rewritten"}
    assert {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")} == {
        *NAMES,
        "folder",
        "mnist",
        "rewritten",
    }


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"]])
@pytest.mark.parametrize("name", NAMES)
def test_anything_but_one_folder_shows_the_usage(name, arguments, started):
    assert started(name, *arguments) == (2, f"usage: REGARD_DATA=FOLDER python {SCRIPTS / name}.py OUT\n")


@pytest.mark.parametrize(("name", "data"), NAMES.items())
def test_without_its_data_a_script_says_which_folder_it_wants(name, data, started, monkeypatch, tmp_path):
    monkeypatch.delenv("REGARD_DATA", raising=False)
    assert started(name, tmp_path) == (f"REGARD_DATA: name the folder that holds {data}", "")
    monkeypatch.setenv("REGARD_DATA", "no/where")
    wanted = f"REGARD_DATA: there is no folder {Path('no/where') / data}; name the folder that holds {data}"
    assert started(name, tmp_path) == (wanted, "")
    assert not any(tmp_path.iterdir())


def test_a_data_set_is_looked_for_by_its_name(script, monkeypatch, tmp_path):
    (tmp_path / "emoji").mkdir()
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["emoji.py", "out"])
    assert script("folder").given("emoji") == (tmp_path / "emoji", Path("out"))


def test_a_picture_is_named_as_a_table_spells_it(script, tmp_path):
    spelt = script("folder").picture(tmp_path, "train/é 1", Image.new("L", (3, 2), 7))
    assert spelt == "pictures/train/é 1.png"
    with Image.open(tmp_path / spelt) as image:
        assert (image.size, image.getpixel((0, 0))) == ((3, 2), 7)


def test_a_table_has_tabs_between_cells_and_says_its_length(script, tmp_path, capsys):
    path = tmp_path / "a.tsv"
    script("folder").table(path, (row for row in [("a.png", "一 b"), ("c.png", "d")]))
    assert path.read_bytes() == "a.png\t一 b\nc.png\td\n".encode()
    assert capsys.readouterr().out == f"{path}: 2 lines\n"


@pytest.mark.parametrize("cell", ["a\tb", "a\nb", "a\rb"])
def test_a_cell_that_would_break_the_table_is_refused(cell, script, tmp_path):
    with pytest.raises(
        ValueError, match=r"a cell of .*a\.tsv:2 has a tab or the end of a line in it, which a TSV cannot hold"
    ):
        script("folder").table(tmp_path / "a.tsv", [("x", "y"), ("z", cell)])
    assert not any(tmp_path.iterdir())
