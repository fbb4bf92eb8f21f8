"""Factory of the attention inside a CNN by name: "channel", "spatial", "none"."""

import inspect
from math import gcd

from regard import registry
from regard.attention.visual import Visual

REDUCTION, MIN_CHANNELS = 16, 8
"""Divisor of an attention's channels, as in the papers, and the fewest channels that it leaves where it can."""


def build_visual_attention(name: str, channels: int) -> Visual | None:
    """Build the attention called `name` for maps of so many channels; "none" gives None.

    Where the papers divide the channels by 16, fewer channels are divided by less, so that 8 remain.
    """
    if name == "none":
        return None
    visual_class = registry.find(name, "visual")
    narrows = "reduction" in inspect.signature(visual_class).parameters
    visual: Visual = visual_class(channels, **({"reduction": gcd(channels, _reduction(channels))} if narrows else {}))
    return visual


def _reduction(channels: int) -> int:
    """16, or the largest power of two below that leaves 8 channels."""
    reduction = REDUCTION
    while reduction > 1 and channels < reduction * MIN_CHANNELS:
        reduction //= 2
    return reduction
