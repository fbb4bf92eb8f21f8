"""Attention mechanisms of the literature: compositions of stages, some with state between steps."""

from typing import Any

from regard import registry


def __getattr__(name: str) -> Any:
    return registry.find_attribute(__name__, name)
