"""Mechanisms: what a paper calls its attention, as one composition of stages, or with state between steps."""

from typing import Any

from regard import registry


def __getattr__(name: str) -> Any:
    return registry.attribute(__name__, name)
