"""A stage explains itself, is built from its sizes, and has a test that mirrors its file."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from regard import registry

TESTS = Path(__file__).parents[1]
KINDS = ("score", "normalise", "scope", "mechanisms", "positions", "visual")
EVERYTHING = [(kind, name) for kind in KINDS for name in registry.names(kind)]
everything = pytest.mark.parametrize(("kind", "name"), EVERYTHING)


@everything
def test_a_docstring_opens_with_a_sentence_and_shows_a_formula_and_a_cost(kind, name):
    text = inspect.getdoc(registry.find(name, kind))
    first, *rest = text.splitlines()
    assert re.fullmatch(r"[A-Z].*\.", first), f"no sentence: {first!r}"
    assert first == registry.summary(name, kind)
    assert any(line.startswith("    ") for line in rest), "an indented formula is missing"
    assert any(line.startswith("Cost: ") for line in rest), "a line that begins with 'Cost: ' is missing"


@pytest.mark.parametrize(("kind", "name"), [each for each in EVERYTHING if each != ("scope", "padding")])
def test_a_docstring_links_the_paper(kind, name):
    assert re.search(r"https://(arxiv\.org/abs/\d{4}\.\d{4,5}|doi\.org/10\.)", inspect.getdoc(registry.find(name, kind)))


@pytest.mark.parametrize(("kind", "name"), [each for each in EVERYTHING if each[0] != "scope"])
def test_everything_is_built_from_its_sizes_alone(kind, name):
    assert isinstance(registry.build(name, kind, query=8, key=8, heads=2, size=8, channels=16), registry.find(name, kind))


@pytest.mark.parametrize("name", registry.names("scope"))
def test_a_scope_gives_a_sample_of_itself_that_fits(name):
    scope = registry.find(name, "scope")
    sample = scope.sample(3, 5)
    assert isinstance(sample, scope)
    sample.check(3, 2, 4, 5)


SOURCES = [path.relative_to(registry.PACKAGE) for path in sorted(registry.PACKAGE.rglob("*.py")) if "__" not in path.name]


@cache
def imported_by_tests():
    """Dotted names of the modules that tests import."""
    names = set()
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_source_file_has_a_test_of_its_name_or_one_that_imports_it(source):
    mirror = TESTS / source.with_name(f"test_{source.stem.strip('_')}.py")
    assert mirror.is_file() or ".".join(("regard", *source.with_suffix("").parts)) in imported_by_tests()
