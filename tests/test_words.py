"""Words of the sources: module docstrings are sentences or noun phrases, and names say what they hold."""

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
EMPTY_LOCALS = EMPTY_WORDS | {"each", "there", "left"}
REMAINING_LOCALS = {"tasks/anomaly", "tasks/forecast", "viewer/html", "viewer/huggingface", "viewer/record"}
"""Folders that still have locals, loop variables or attributes with such names. The list only shrinks."""
WEIGHTS = {
    ("attention/mechanisms/gated_coverage.py", "asked"),
    ("tasks/vqa/model.py", "asked"),
    ("tasks/vqa/model.py", "found"),
}
"""Attributes that name parameters in saved weights."""
EMPTY = re.compile(rf"\b_*({'|'.join(sorted(EMPTY_LOCALS))})_*\b", re.IGNORECASE)
DOCSTRING = re.compile(r'""".*?"""', re.DOTALL)
SIDE = re.compile(r"right|top|bottom")
"""Words beside which `left` is a side."""


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


def bindings(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Names that a file binds: variables, arguments, attributes of self, functions, classes and type variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node
        elif isinstance(node, ast.arg):
            yield node.arg, node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node


def around(tree: ast.Module, text: str, line: int) -> str:
    """Source of the top-level statement at a line."""
    statement = next(node for node in tree.body if node.lineno <= line <= (node.end_lineno or line))
    return "\n".join(text.split("\n")[statement.lineno - 1 : statement.end_lineno])


def local_offences(text: str, name: str = "") -> list[str]:
    """Names without a meaning of their own at any level; `left` may be a side."""
    tree = ast.parse(text)
    empty = [(word, node) for word, node in bindings(tree) if word.strip("_").lower() in EMPTY_LOCALS]
    sides = [node for word, node in empty if word == "left" and SIDE.search(around(tree, text, node.lineno))]
    return [f"{word}:{node.lineno}" for word, node in empty if node not in sides and (name, word) not in WEIGHTS]


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_words_of_the_field(name):
    left = offences(FILES[name].read_text(encoding="utf-8"))
    if name in REMAINING:
        assert left, f"{name} is clean: take it off REMAINING"
    else:
        assert not left, f"{name}: {left}; docs/glossary.md has the field's words"


def test_the_list_has_no_files_that_are_gone():
    assert set(FILES) >= REMAINING


def test_locals_have_words_of_the_field():
    """`made`, `each` or `left` say nothing of a value: a noun does, and a loop variable names the item."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    suspects = {
        name: text for name, text in texts.items() if EMPTY.search(DOCSTRING.sub("", text))
    }  # parsing all takes long
    offenders = {name: names for name, text in suspects.items() if (names := local_offences(text, name))}
    folders = {folder for folder in REMAINING_LOCALS if any(name.startswith(f"{folder}/") for name in offenders)}
    others = {name: names for name, names in offenders.items() if not any(name.startswith(f"{one}/") for one in folders)}
    assert not others, "docs/glossary.md has the field's words"
    assert folders == REMAINING_LOCALS, f"{REMAINING_LOCALS - folders} are clean: take them off REMAINING_LOCALS"


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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("for each in kernels: ...", ["each:1"]),
        ("rows = [each for each in kernels]", ["each:1"]),
        ("def _select(given): ...", ["given:1"]),
        ("key = lambda found: found", ["found:1"]),
        ("class A:\n    def __init__(self):\n        self._kept = {}", ["_kept:3"]),
        ("if (told := select()): ...", ["told:1"]),
        ("class _Found: ...", ["_Found:1"]),
        ("SEEN = frozenset()", ["SEEN:1"]),
        ("def count():\n    left = room", ["left:2"]),
        ("def multiply(left, right): ...", []),
        ("top, left = corner", []),
        ("for kernel in kernels: ...", []),
        ("print(request.left, kept)", []),
    ],
)
def test_the_rule_for_locals_bites(text, names):
    assert local_offences(text) == names
