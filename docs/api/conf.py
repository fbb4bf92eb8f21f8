"""Sphinx: the API reference, generated from docstrings. `make docs` builds it into build/docs."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from pages import write_pages  # noqa: E402

import regard  # noqa: E402

project, author, language = "Regard", "the founders of Regard", "en"
release = version = regard.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme, html_title = "furo", f"Regard {version}"
html_copy_source = False
default_role = "literal"
nitpicky = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": True, "exclude-members": "forward"}
exclude_patterns = ["README.md"]

BLOCK = re.compile(r"^ {4,}\S")
SHAPE = re.compile(r"(?:jaxtyping\.)?(\w+)\[(?:torch\.)?Tensor, '([^']*)'\]")


def mark_formulas(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make the indented blocks of a docstring, which are formulas and examples, literal blocks of reStructuredText."""
    marked: list[str] = []
    inside = False
    for line in lines:
        if BLOCK.match(line) and not inside:
            marked += ([] if marked and not marked[-1] else [""]) + ["::", ""]
            inside = True
        elif inside and line and not BLOCK.match(line):
            marked += [""] * bool(marked[-1])
            inside = False
        marked.append(line)
    lines[:] = [*marked, ""]


def shorten_signature(
    app: Any, kind: str, name: str, thing: Any, options: Any, signature: str | None, result: str | None
) -> Any:
    """Write shapes as Float["batch heads queries dim"]."""
    if signature is None and inspect.isclass(thing):
        return None
    shorten = SHAPE.sub
    return tuple(None if part is None else shorten(r'\1["\2"]', part) for part in (signature, result))


def setup(app: Any) -> None:
    """Write the pages and connect the hooks."""
    write_pages(HERE)
    app.connect("autodoc-process-docstring", mark_formulas)
    app.connect("autodoc-process-signature", shorten_signature)
