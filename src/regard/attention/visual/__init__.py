"""Attention inside a CNN: which channels, which places and which receptive fields of a feature map count.

Each is a module from (batch, channels, height, width) to the same, to be set between the layers of any network.
"""

from typing import Any

from regard import lookup


def __getattr__(name: str) -> Any:
    return lookup.attribute(__name__, name)
