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
    values = [*first, *map(given.__getitem__, program.arg_names[len(first) :])]
    key = tuple(like(program, values, options))
    known = KNOWN.get(key)
    if known is not None:
        known[grid](*values)
        return
    compiled = program[grid](*values, **options)
    if compiled is not None:  # nothing is compiled by the interpreter
        if len(KNOWN) >= MOST:
            KNOWN.clear()
        KNOWN[key] = compiled


def like(program: Any, values: Sequence[Any], options: Mapping[str, Any]) -> list[Hashable]:
    """What decides on a compiled program: numbers as they are, and the precision of a tensor, in a tuple if not aligned.

    Tensors may come in tuples with their strides. A program is told by its function: Triton would hash its source, behind a
    lock.
    """
    lead = values[0][0] if values[0].__class__ is tuple else values[0]
    found = [program.fn, lead.device, *options.values()]
    add = found.append
    for each in values:  # one loop, without a call for each: it runs at every launch
        if each.__class__ in PLAIN:
            add(each)
        elif each.__class__ is tuple:
            add((tuple, len(each)))
            for part in each:
                add(part if part.__class__ in PLAIN else part.dtype if part.data_ptr() % 16 == 0 else (part.dtype,))
        else:
            add(each.dtype if each.data_ptr() % 16 == 0 else (each.dtype,))
    return found
