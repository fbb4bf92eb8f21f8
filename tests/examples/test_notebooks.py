"""The notebooks: cells compile, imports and links exist; run from top to bottom they output what their text promises."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import notebook

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LIMIT = 200_000
"""Bytes of a notebook: outputs are stored, pages of the viewer are not."""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_the_two_notebooks_of_the_readme():
    assert [path.stem for path in NOTEBOOKS] == ["attention_in_your_model", "train_and_view"]


def resolve_import(node):
    """Import what a statement imports; every name of a `from` has to exist."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            importlib.import_module(alias.name)
    elif isinstance(node, ast.ImportFrom):
        module = importlib.import_module(node.module)
        missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
        assert not missing, f"{node.module} has no {', '.join(missing)}"


@every_notebook
def test_every_cell_compiles_and_every_import_exists(path):
    cells = notebook.read_cells(path, "code")
    assert len(cells) > 8
    for cell in cells:
        for node in ast.walk(ast.parse(cell["source"])):
            resolve_import(node)


@every_notebook
def test_every_link_leads_to_a_file(path):
    links = [
        link for cell in notebook.read_cells(path, "markdown") for link in re.findall(r"\]\(([^):#]+)\)", cell["source"])
    ]
    assert len(links) > 1
    assert [link for link in links if not (FOLDER / link).exists()] == []


@every_notebook
def test_the_stored_outputs_are_small_and_of_one_run_without_errors_and_pages(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["metadata"]["kernelspec"]["name"]) == (4, "python3")
    assert path.stat().st_size < LIMIT
    cells = notebook.read_cells(path, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert not any("text/html" in output.get("data", {}) for output in outputs)


def test_a_cell_shows_its_last_expression_unless_a_semicolon_ends_it():
    names = {}
    assert notebook.run_cell("a = 1\nprint(a)\na + 1", names) == {"text": "1\n", "data": {"text/plain": "2"}}
    assert notebook.run_cell("a + 1;", names) == {"text": "", "data": {}}
    assert notebook.run_cell("b = a", names)["data"] == {}
    assert names["b"] == 1


def run_notebook(name, folder):
    """What each cell prints and shows, in a process of its own in an empty folder."""
    path = os.pathsep.join(filter(None, [str(FOLDER.parents[1] / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, notebook.__file__, str(FOLDER / f"{name}.ipynb")],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(folder), "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stored_text(name):
    """What each cell printed when the notebook was stored."""
    return [
        "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
        for cell in notebook.read_cells(FOLDER / f"{name}.ipynb", "code")
    ]


@pytest.mark.soak
@pytest.mark.unhooked
@pytest.mark.timeout(600)
def test_attention_in_your_model_prints_what_is_stored_and_shows_a_page(tmp_path):
    outputs = run_notebook("attention_in_your_model", tmp_path)
    assert [output["text"] for output in outputs] == stored_text("attention_in_your_model")
    text = "".join(output["text"] for output in outputs)
    assert "Entmax     0.83 0.17 0.00 | 0.00 0.50 0.50" in text
    assert "equal outputs: True" in text
    assert "at least 95 % are right: True" in text
    assert f"largest weight: {[3] * 9}" in text
    assert "pass  half_precision" in text
    assert "FAIL" not in text
    [page] = [output["data"]["text/html"] for output in outputs if "text/html" in output["data"]]
    assert "iframe" in page


@pytest.mark.soak
@pytest.mark.unhooked
@pytest.mark.timeout(600)
def test_train_and_view_trains_two_models_and_shows_three_views(tmp_path):
    outputs = run_notebook("train_and_view", tmp_path)
    text = "".join(output["text"] for output in outputs)
    assert "all 250 steps are done" in text
    losses = [float(loss) for loss in re.findall(r"loss +(\d+\.\d+)", text)]
    assert len(losses) == 3
    assert max(losses) < 1
    assert losses[0] == pytest.approx(losses[1], abs=0.01)
    assert "rows sum to 1.0" in text
    zeros = [tuple(map(int, pair)) for pair in re.findall(r"weights of 0: (\d+) of (\d+)", text)]
    assert [count > 0 for count, _ in zeros] == [False, True]
    shown = [output["data"] for output in outputs if output["data"]]
    assert shown[0]["text/plain"].startswith("Prediction(")
    pages = [data["text/html"] for data in shown if "text/html" in data]
    assert len(pages) == 2
    assert all("iframe" in page for page in pages)
    assert any(data["text/plain"].startswith("<Drawing") for data in shown)
