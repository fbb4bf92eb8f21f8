"""Every stage, mechanism, kernel and task by name: regard list."""

from typing import Annotated

import typer

from regard import registry
from regard.cli import Command, app
from regard.cli._terminal import find_width, wrap
from regard.components import GROUPS, list_entry_points

KINDS = f"One of {', '.join(registry.FOLDERS)}."


@app.command("list", cls=Command, short_help="List stages, mechanisms, kernels and tasks.")
def list_(kind: Annotated[str | None, typer.Argument(help=KINDS, metavar="KIND")] = None) -> None:
    """List everything, or one kind, one line each.

    \b
    Example:
        regard list
        regard list score
    """
    typer.echo(listing(kind))


def listing(kind: str | None = None) -> str:
    """Names and summaries of one kind, or of each kind under its heading. Reads the files, imports none."""
    kinds = [kind] if kind else list(registry.FOLDERS)
    rows = {kind: [(name, registry.summary(name, kind)) for name in registry.names(kind)] for kind in kinds}
    for name, entry in list_entry_points().items():
        for group in (kind for kind in kinds if GROUPS.get(kind) == entry.group):
            origin = f" by {entry.dist.name} {entry.dist.version}" if entry.dist else ""
            rows[group].append((name, f"Installed{origin}."))
    width = max(len(name) for group in rows.values() for name, _ in group)
    if kind:
        return align_columns(rows[kind], width)
    return "\n\n".join(f"{name}\n{align_columns(group, width, '  ')}" for name, group in rows.items())


def align_columns(rows: list[tuple[str, str]], width: int = 0, indent: str = "") -> str:
    """Two aligned columns as text, the second wrapped to the width of a terminal."""
    width = width or max(len(name) for name, _ in rows)
    first, limit = indent + width * " " + "  ", find_width()
    return "\n".join(wrap(line, limit, f"{indent}{name:<{width}}  ", first).rstrip() for name, line in rows)
