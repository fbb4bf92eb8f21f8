"""Run the contracts of a component of one's own: regard check."""

from typing import Annotated

import typer

from regard import registry
from regard.cli import Command, app
from regard.errors import ConfigError

KINDS = {"score": "score", "normaliser": "normalise", "scope": "scope", "mechanism": "mechanisms"}
"""Kinds of components in words, and as the registry calls them."""


@app.command(cls=Command, short_help="Run the contracts of a score, normaliser, scope or mechanism of one's own.")
def check(
    component: Annotated[
        str,
        typer.Argument(
            help="A class in a Python file, my_scores.py:L1, or an installed component.", metavar="FILE.py:CLASS"
        ),
    ],
    kind: Annotated[str | None, typer.Option(help=f"Where the class does not tell: {', '.join(KINDS)}.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="A contract to leave out, by its name; several times.")] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="Check torch.compile and torch.export too.")] = False,
) -> None:
    """Run the contracts of a score, normaliser, scope or mechanism of one's own, and show each with the reason it fails.

    The file is imported. Exit code 0 where every contract holds, 1 where one fails, 2 where there is nothing to check.

    \b
    Example:
        regard check my_scores.py:L1
    """
    from regard.components import open_component

    subject = open_component(component)
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"--kind needs one of {', '.join(KINDS)}, got {kind!r}")
    from regard.attention.kinds import classify
    from regard.testing import check_component

    wanted = None if kind is None else KINDS[kind]
    name = classify(subject, wanted).name
    typer.echo(f"{component}, a {registry.SINGULAR.get(name, name)}")
    failures = 0
    for outcome in check_component(subject, wanted, skip=skip or (), compiled=compiled):
        typer.echo(f"  {'pass' if outcome.passed else 'FAIL'}  {outcome.name:<16} {outcome.sentence}")
        if not outcome.passed:
            failures += 1
            typer.echo(f"        {outcome.reason}")
    typer.echo(f"{failures} failed" if failures else "all contracts hold")
    raise typer.Exit(1 if failures else 0)
