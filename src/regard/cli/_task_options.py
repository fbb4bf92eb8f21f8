"""Options that tasks declare for commands: --question of vqa, --index of retrieve."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from regard.registry import task_options

PARAMETER = "task_options"
"""Parameter of a command that receives the options in use, by name."""


def with_task_options(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator that adds the options which tasks declare for a command, and passes those in use as `task_options`."""
    options = [option for option in task_options() if command in option.commands]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def wrapper(*arguments: Any, **parameters: Any) -> None:
            values = {option.name: parameters.pop(option.name, None) for option in options}
            used = {name: value for name, value in values.items() if value is not None}
            function(*arguments, **parameters, **{PARAMETER: used})

        signature = inspect.signature(function)
        own = [parameter for name, parameter in signature.parameters.items() if name != PARAMETER]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        more = [
            inspect.Parameter(
                option.name, kind, default=None, annotation=Annotated[str | None, typer.Option(help=option.help)]
            )
            for option in options
        ]
        wrapper.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *more)}
        return wrapper

    return decorate


def files_of(options: Mapping[str, str]) -> dict[str, str]:
    """Options in use that name files."""
    files = {option.name for option in task_options() if option.is_file}
    return {name: value for name, value in options.items() if name in files}
