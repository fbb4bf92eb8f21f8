"""Conversation with a model: an interactive prompt that keeps the turns."""

import sys
from typing import Any

import typer

from regard.errors import ConfigError

FORGET, END = "/new", "/quit"


def converse(model: Any, beam: int | None) -> None:
    """Answer each line of standard input with all turns before it, until its end."""
    if not hasattr(model, "reply"):
        raise ConfigError(
            f"--chat is for models that converse (the task converse), and this one is of {model.name}; leave it out"
        )
    typed, turns = sys.stdin.isatty(), list[str]()
    if typed:
        typer.echo(f"{FORGET} begins a new conversation, {END} or Ctrl-D ends it.", err=True)
    while True:
        if typed:
            typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        text = line.strip()
        if not line or text == END:
            return
        if text == FORGET:
            turns = []
        elif text:
            turns.append(text)
            turns.append(model.reply(turns, beam=beam))
            typer.echo(turns[-1])
