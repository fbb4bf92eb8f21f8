"""A modality is a folder: only its encoders, tasks, metrics, axis and converters import it or name its classes.

Everything else asks for sources and targets through `data/modality.py`. Imports and names of classes count, of a module,
inside functions and under TYPE_CHECKING; words in prose do not.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent
MODALITIES = sorted(path.name for path in (SOURCE / "data").iterdir() if (path / "__init__.py").is_file())

OWN = {
    "audio": ("models.encoders",),
    "image": ("models.encoders", "tasks.kinds.image"),
    "text": ("tasks.kinds.text",),
}
"""Modules of a modality outside its folder: its encoders and the family of its tasks."""

SHARED = ("tasks.kinds", "tasks._validate")
"""Modules of `tasks` that are of no task; a task itself, a file or a folder, imports the modalities that it is about."""

EXCEPTIONS = {
    ("alignment.pharaoh", "text"): "links of the training data are between words",
    ("alignment.soft", "text"): "an alignment is one of the words of two texts",
    ("alignment.unknown", "text"): "an unknown word is replaced by a word of the source",
    ("alignment.words", "text"): "words are units of a text",
    ("data.audio.codec", "text"): "the target modality of recordings with texts",
    ("data.image.codec", "text"): "the target modality of images with texts",
    ("decoding.constraints.prefix", "text"): "a forced prefix is a text",
    ("decoding.constraints.spec", "text"): "phrases that an output must hold are texts",
    ("decoding.constraints.spelling", "text"): "phrases are matched letter by letter",
    ("inference.backtranslate", "text"): "back-translation makes texts of texts, and adds noise to their words",
}
"""Other modules that are about one modality by their nature, and why."""


def modules() -> dict[str, ast.Module]:
    """Syntax tree of every module of the package by its dotted name, without `regard`."""
    trees = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


TREES = modules()


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@cache
def classes(modality: str) -> set[str]:
    """Names of the public classes of a modality's folder that mean nothing else in the package."""
    own, others = set(), set()
    for name, tree in TREES.items():
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        if is_within(name, f"data.{modality}"):
            own |= defined
        else:
            assigned = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
            others |= defined | {target.id for target in assigned if isinstance(target, ast.Name)}
    return {name for name in own - others if not name.startswith("_")}


@cache
def facts(module: str) -> tuple[set[str], set[str]]:
    """Modules of the package that a module imports anywhere, without `regard`, and the names in its code.

    A string that is one name counts as a name, and an attribute too.
    """
    imports, names = set(), set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)
    return {target.removeprefix("regard.") for target in imports}, names


def knows(module: str, modality: str) -> bool:
    """True if a module imports from the folder of a modality or names one of its classes."""
    imports, names = facts(module)
    return any(is_within(target, f"data.{modality}") for target in imports) or bool(names & classes(modality))


def is_own(module: str, modality: str) -> bool:
    """True for the folder of a modality, its encoders, tasks and converters of other formats."""
    own = (f"data.{modality}", "interop", *OWN.get(modality, ()))
    if any(is_within(module, package) for package in own):
        return True
    return module.startswith("tasks.") and not any(is_within(module, package) for package in SHARED)


def outsiders(modality: str) -> set[str]:
    """Modules that know a modality and are neither its own nor excepted."""
    excepted = {module for module, other in EXCEPTIONS if other == modality}
    return {
        module for module in TREES if not is_own(module, modality) and module not in excepted and knows(module, modality)
    }


@pytest.mark.parametrize("modality", MODALITIES)
def test_nothing_else_knows_a_modality(modality):
    assert outsiders(modality) == set(), "ask through data/modality.py"


@pytest.mark.parametrize(("module", "modality"), EXCEPTIONS)
def test_an_exception_is_one(module, modality):
    assert any(knows(name, modality) for name in TREES if is_within(name, module)), "take it off EXCEPTIONS"
