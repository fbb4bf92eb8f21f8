"""Methods that do not keep their owner alive.

What holds one of its own methods holds itself, and stays until the next collection, with its threads and its memory.
"""

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakMethod

Thing = TypeVar("Thing")


def weakly(method: Callable[[int], Thing]) -> Callable[[int], Thing]:
    """The same method for its owner to keep, or to give to what it keeps; whoever else calls it holds the owner."""
    held = WeakMethod(method)

    def call(number: int) -> Thing:
        found = held()
        if found is None:
            raise ReferenceError("the owner of this method is gone; keep it for as long as the method is called")
        return found(number)

    return call
