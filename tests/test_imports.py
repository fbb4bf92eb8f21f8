"""Imports point one way: a package imports only those to its left.

    errors inputs user_cache regular_files io manifest registry tree boundary components  <-  config  <-  attention  <-  kernels
    config  <-  data
    kernels data  <-  models  <-  metrics  <-  decoding  <-  alignment  <-  losses  <-  training  <-  viewer  <-  inference
    <-  tasks  <-  interop  <-  huggingface  <-  testing  <-  api  <-  compare  <-  cli

All imports count: of a module, inside functions, and under TYPE_CHECKING.
"""

import ast
from pathlib import Path

import regard

SOURCE = Path(regard.__file__).parent
BOTTOM = (
    "errors",
    "inputs",
    "user_cache",
    "regular_files",
    "io",
    "manifest",
    "registry",
    "tree",
    "boundary",
    "extras",
    "revision",
    "components",
)
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
    "huggingface",
    "testing",
    "api",
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


def imports(path: Path, *, functions: bool = True) -> set[str]:
    """The modules of the package that a file imports anywhere; without `functions`, at the top of the module alone."""
    targets, tree = set(), ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if functions else tree.body:
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


LAZY = {
    ("attention.expected_monotonic", "kernels.runtime.capability"),
    ("attention.expected_monotonic", "kernels.triton.monotonic.operator"),
    ("attention.masked_norm", "kernels.runtime.capability"),
    ("attention.masked_norm", "kernels.triton.masked_norm.operator"),
    ("inference.load", "interop.onnx.archive"),
    ("inference.load", "interop.onnx.engine"),
    ("inference.load", "interop.onnx.external"),
    ("inference.load", "tasks"),
    ("inference.load", "tasks.kinds.types"),
}
"""Imports to the right that a registry or a fused operator needs, by name: dispatch and what has kernels of its own to kernels,
`load` to tasks and to the engines of interop."""


def violations() -> set[tuple[str, str]]:
    """Each import of a package to the right, as module and imported module."""
    return {
        (module, target)
        for module, path in MODULES.items()
        for target in imports(path)
        if not allowed(package(module), package(target))
    }


def test_every_package_has_a_place_in_the_order():
    assert {package(module) for module in MODULES} - {"regard", "", "__main__"} == set(ORDER)


def test_imports_point_to_the_left_but_for_those_that_are_listed():
    assert violations() == LAZY


def test_those_that_are_listed_stand_in_functions():
    top = {(module, target) for module, _ in LAZY for target in imports(MODULES[module], functions=False)}
    assert not top & LAZY


def test_an_import_to_the_right_is_found_wherever_it_stands(tmp_path):
    path = tmp_path / "new.py"
    path.write_text("def late():\n    from regard.training.loop import train\n    import regard.cli.train\n")
    assert imports(path) == {"training.loop", "cli.train"}
    assert not allowed("data", "training")
    assert not allowed("data", "attention")
    assert allowed("cli", "training")
