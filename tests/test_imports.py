"""Imports point one way: a package imports only those to its left.

    errors io manifest registry tree  <-  config  <-  attention  <-  kernels          config  <-  data
    kernels data  <-  models  <-  metrics  <-  decoding  <-  alignment  <-  losses  <-  training  <-  viewer  <-  inference
    <-  tasks  <-  interop  <-  compare  <-  cli

All imports count: of a module, inside functions, and under TYPE_CHECKING.
"""

import ast
from collections import Counter
from pathlib import Path

import regard

SOURCE = Path(regard.__file__).parent
BOTTOM = ("errors", "io", "manifest", "registry", "tree")
ORDER = (
    *BOTTOM,
    "config",
    "attention",
    "kernels",
    "data",
    "models",
    "metrics",
    "decoding",
    "alignment",
    "losses",
    "training",
    "viewer",
    "inference",
    "tasks",
    "interop",
    "compare",
    "cli",
)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name, without `regard`."""
    names = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules()


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports anywhere."""
    targets = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names if alias.name.startswith("regard.")}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            base = node.module or ""
            if base.partition(".")[0] == "regard":
                full = {f"{base}.{alias.name}".removeprefix("regard.") for alias in node.names}
                targets |= {f"regard.{name}" if name in MODULES else base for name in full}
    return {target.removeprefix("regard.") for target in targets if target != "regard"}


def package(module: str) -> str:
    return module.partition(".")[0]


def allowed(importer: str, imported: str) -> bool:
    """Whether a package may import another."""
    if importer == imported or importer not in ORDER:  # regard/__init__ and __main__ are the doors to everything
        return True
    if importer == "data" and imported in ("attention", "kernels"):
        return False
    return ORDER.index(imported) < ORDER.index(importer)


def violations() -> Counter:
    """How often a module imports a package to its right."""
    return Counter(
        (module, package(target))
        for module, path in MODULES.items()
        for target in imports(path)
        if not allowed(package(module), package(target))
    )
