"""Notebooks without a kernel: the code cells run in order in one namespace, and what each prints and shows is kept.

python tests/examples/notebook.py FILE.ipynb prints a JSON list with a table for each code cell: `text` is what it printed,
`data` the representations of the value of its last line.
"""

import ast
import io
import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def read_cells(path: Path, kind: str) -> list[dict[str, Any]]:
    """Cells of one kind, "code" or "markdown"; their sources are joined."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == kind]


def run_cell(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a cell; its value is that of a last line which is an expression and does not end with a semicolon."""
    tree = ast.parse(source)
    last = tree.body[-1]
    value = None
    printed = io.StringIO()
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            tree.body.pop()
            exec(compile(tree, "<cell>", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        else:
            exec(compile(tree, "<cell>", "exec"), names)
    return {"text": printed.getvalue(), "data": represent(value)}


def represent(value: Any) -> dict[str, Any]:
    """Representations that a notebook would store."""
    if value is None:
        return {}
    bundle = getattr(value, "_repr_mimebundle_", None)
    return {"text/plain": repr(value)} if bundle is None else bundle()


def main(path: str) -> None:
    from regard.viewer.html import view

    view.in_notebook = lambda: True  # a page stands in the cell, and no server starts
    names = {"__name__": "__main__"}
    outputs = [run_cell(cell["source"], names) for cell in read_cells(Path(path), "code")]
    json.dump(outputs, sys.stdout)


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "Agg"
    main(sys.argv[1])
