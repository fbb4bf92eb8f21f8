"""`--verbose` of predict and evaluate: reports on standard error which decoding engine runs, and why not a faster one."""

import logging
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor

LOGGER = logging.getLogger("regard.decoding")
"""Logger of `decoding`, which selects an engine for each batch."""


class EngineReport(logging.Handler):
    """Log handler that prints each message once."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message on standard error."""
        message = record.getMessage()
        if message not in self.messages:
            self.messages.add(message)
            typer.echo(message, err=True)


def report_engines(context: typer.Context, model: "Predictor", engine: str = "native") -> None:
    """Report the engines that run until the end of a command."""
    if not model.searches or engine != "native":
        reason = f"--engine {engine}" if engine != "native" else f"{model.name} does not search"
        device = next(model.model.parameters()).device if engine == "native" else "cpu"
        typer.echo(f"engine: {'eager' if engine == 'native' else engine} on {device}; {reason}", err=True)
        return
    handler, level = EngineReport(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)

    def stop() -> None:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)

    context.call_on_close(stop)
