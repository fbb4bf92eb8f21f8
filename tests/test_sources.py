"""The sources themselves: nothing in them may load code from data."""

import ast
from pathlib import Path

import pytest

import regard

SOURCES = sorted(Path(regard.__file__).parent.rglob("*.py"))
MODULES = {
    "pickle",
    "joblib",
    "shelve",
    "marshal",
    "dill",
    "cloudpickle",
    "socket",
    "requests",
    "urllib.request",
    "http.client",
}
CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "np.load", "numpy.load", "yaml.load", "os.system"}


def dotted(node: ast.expr) -> str:
    """a.b.c of a call's function."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def forbidden(module: str) -> bool:
    """Whether a module, or one that it lies in, can load code or reach the network."""
    parts = module.split(".")
    return any(".".join(parts[: end + 1]) in MODULES for end in range(len(parts)))


def faults(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if forbidden(name.name)]
        elif isinstance(node, ast.ImportFrom) and forbidden(node.module or ""):
            found.append(node.module)
        elif isinstance(node, ast.Call) and dotted(node.func) in CALLS:
            found.append(f"{dotted(node.func)}()")
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_no_source_can_load_code_from_data(source):
    assert faults(ast.parse(source.read_text(encoding="utf-8"))) == []


IMPORTERS = {"exec_module", "source_to_code", "spec_from_file_location", "run_path", "run_module"}


def importers(tree: ast.AST) -> set[str]:
    """Calls that make a module of a file."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {name for call in calls if (name := dotted(call.func).rpartition(".")[2]) in IMPORTERS}


def test_one_source_alone_imports_files_which_the_user_names():
    root = SOURCES[0].parent
    texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in SOURCES}
    assert [name for name, text in texts.items() if importers(ast.parse(text))] == ["components.py"]


@pytest.mark.parametrize(
    "text", ["import pickle", "import urllib.request", "from marshal import loads", "torch.load('x')", "eval('1')"]
)
def test_the_gate_bites(text):
    assert faults(ast.parse(text)) != []
