"""The stages of an attention through a window, with the window among them."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.attention.local import Windows, count_keys
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.types import Memory


def apart(module: Windows, query: Float[Tensor, "batch queries query"], memory: Memory) -> dict[str, Any]:
    """The stages of an attention through a window, the window among them."""
    if module.centre is None:
        return {"score": module.score, "normalise": module.normalise, "scope": module.scope}
    centre = module.centre(query, count_keys(memory), 0)
    scope = WindowScope(centre, module.width)
    normalise = GaussianWindow(module.normalise, centre, module.width) if module.centre.gaussian else module.normalise
    return {"score": module.score, "normalise": normalise, "scope": scope}
