"""For a machine with torch and triton alone: what stands in for jaxtyping, whose shapes nobody checks there.

A benchmark imports this first. Where jaxtyping is installed nothing happens.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class Shape:
    """Float[Tensor, "batch time"] is Tensor."""

    def __class_getitem__(cls, given: tuple[Any, str]) -> Any:
        return given[0]


if importlib.util.find_spec("jaxtyping") is None:
    stand_in = ModuleType("jaxtyping")
    for name in ("Bool", "Float", "Int", "Integer", "Num", "Real", "Shaped", "UInt8"):
        setattr(stand_in, name, Shape)
    sys.modules["jaxtyping"] = stand_in

if importlib.util.find_spec("regard") is None:  # not installed either: the sources beside this folder
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
