"""Start a program as one before it, without asking again what its arguments are like.

At every launch Triton looks at each argument to find the compiled program that is meant. The programs of additive attention
and of flash have forty, and the host took longer to launch them than an H200 to run them. So the compiled program is
remembered by all that decides on it: precision and alignment of the tensors, and every number as it is.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

KNOWN: dict[Hashable, Any] = {}
MOST = 4096
"""How many are remembered; then it begins anew."""
PLAIN = frozenset((int, float, bool, str, type(None)))
"""What is not a tensor: to ask isinstance would take as long as the launch."""


def start(
    program: Any, grid: tuple[int, int, int], given: Mapping[str, Any], first: Sequence[Any] = (), /, **options: Any
) -> None:
    """Start a program with those of the given arguments that it asks for, behind its `first` ones, which are in order."""
    values = [*first, *(given[name] for name in program.arg_names[len(first) :])]
    lead = values[0][0] if values[0].__class__ is tuple else values[0]
    key = program, lead.device, *options.values(), *[each if each.__class__ in PLAIN else like(each) for each in values]
    known = KNOWN.get(key)
    if known is not None:
        known[grid](*values)
        return
    compiled = program[grid](*values, **options)
    if compiled is not None:  # nothing is compiled by the interpreter
        if len(KNOWN) >= MOST:
            KNOWN.clear()
        KNOWN[key] = compiled


def like(given: Any) -> Hashable:
    """What decides on a program of a tensor, or of a tuple with tensors in it."""
    if given.__class__ is tuple:
        return tuple([each if each.__class__ in PLAIN else like(each) for each in given])
    return given.dtype, given.data_ptr() % 16 == 0
