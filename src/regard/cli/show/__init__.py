"""Formula, paper, drawing, cost and kernels of one thing, or its three stages with numbers: regard show.

Drawings, kernels and numbers come from running what they are about, so a stage that is new in its folder needs nothing
here. Where nobody has written its formula out by hand, its steps say what the call gave.
"""

from typing import Annotated

import typer

from regard import registry
from regard.cli import Command, app
from regard.cli.list_ import KINDS
from regard.errors import ConfigError


@app.command(cls=Command, short_help="Formula, paper, drawing, cost and kernels of one thing.")
def show(
    name: Annotated[str, typer.Argument(help="A name from `regard list`, or FILE.py:CLASS.", metavar="NAME")],
    words: Annotated[
        list[str] | None, typer.Argument(help="Of a task, the settings with these words alone.", metavar="[WORD...]")
    ] = None,
    steps: Annotated[bool, typer.Option("--steps", help="The three stages with numbers on a small example.")] = False,
    kind: Annotated[str | None, typer.Option(help=f"Where several kinds share the name. {KINDS}", metavar="KIND")] = None,
) -> None:
    """Formula, paper, drawing, cost and kernels of one thing; or its stages with numbers.

    \b
    Example:
        regard show causal
        regard show additive --steps
        regard show additive --kind kernels
        regard show translate learning_rate
    """
    name = _open_component(name)
    kind = _locate(name, kind)  # a mistake is answered before torch is waited for
    if words and kind != "tasks":
        raise ConfigError(f"only a task has settings that words select, and {name} is one of {kind}; leave out {words[0]!r}")
    if words:
        from regard.cli.show.settings import write_settings

        typer.echo(write_settings(name, words))
        return
    from regard.cli.show.page import write_page
    from regard.cli.show.steps import write_steps

    typer.echo(write_steps(name, kind) if steps else write_page(name, kind))


def _open_component(name: str) -> str:
    """The name itself; of a class in a Python file, or of an installed component, the name under which it was opened."""
    from regard.components import hand_over, hand_over_named, settle

    with hand_over(()):
        hand_over_named([("model.attention", name)])
        return str(settle(name))


def _locate(name: str, kind: str | None) -> str:
    """The kind that a name belongs to; a kernel or a task is found without being told, where no stage is called the same."""
    stages = [name for findable in registry.FINDABLE for name in registry.names(findable)]
    others = [kind for kind in registry.FOLDERS if kind not in registry.FINDABLE and name in registry.names(kind)]
    return registry.locate(name, others[0] if kind is None and name not in stages and others else kind)
