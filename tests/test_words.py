"""Words of the sources: module docstrings are sentences or noun phrases, and public names say what they hold."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}
RELATIVE_CLAUSE = re.compile(r"(What|How|Whether|Where|Which|When|Who|That|The same)\b")
EMPTY_WORDS = {"found", "told", "made", "given", "kept", "asked", "seen", "held", "drawn", "looked"}
Function = ast.FunctionDef | ast.AsyncFunctionDef

REMAINING: set[str] = set()
"""Files that still have such words. The list only shrinks."""


def decorators(node: Function | ast.ClassDef) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def parameters(function: Function) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument.arg for argument in named if argument is not None]


def fields(node: ast.ClassDef) -> list[str]:
    """Fields of a NamedTuple or dataclass."""
    if "NamedTuple" not in map(ast.unparse, node.bases) and "dataclass" not in decorators(node):
        return []
    return [item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]


def names(tree: ast.Module) -> Iterator[str]:
    """Classes, fields, public functions and methods with their parameters, and arguments of Triton kernels."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (node.name.strip("_").lower(), *fields(node))
        elif isinstance(node, Function) and (not node.name.startswith("_") or "triton" in decorators(node)):
            yield from (node.name, *parameters(node))


def offences(text: str) -> list[str]:
    """Names without a meaning of their own, and a module docstring that begins with a relative clause."""
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree) or ""
    return sorted(set(names(tree)) & EMPTY_WORDS) + [docstring.partition("\n")[0]] * bool(RELATIVE_CLAUSE.match(docstring))


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_words_of_the_field(name):
    left = offences(FILES[name].read_text(encoding="utf-8"))
    if name in REMAINING:
        assert left, f"{name} is clean: take it off REMAINING"
    else:
        assert not left, f"{name}: {left}; docs/glossary.md has the field's words"


def test_the_list_has_no_files_that_are_gone():
    assert set(FILES) >= REMAINING


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('"""How scores are shared."""', ["How scores are shared."]),
        ('"""Howe attention."""', []),
        ("def found(): ...", ["found"]),
        ("def select(*, given, kernel): ...", ["given"]),
        ("def _select(given): ...", []),
        ("@triton.jit\ndef _kernel(seen, q): ...", ["seen"]),
        ("class Looked:\n    pass", ["looked"]),
        ("class Plan(NamedTuple):\n    kept: int", ["kept"]),
        ("@dataclass(frozen=True)\nclass Plan:\n    told: int", ["told"]),
        ("class Plan:\n    told: int", []),
        ("class Plan:\n    def choose(self, asked): ...", ["asked"]),
    ],
)
def test_the_rule_bites(text, left):
    assert offences(text) == left
