"""Launch cache: launches a compiled Triton kernel again without specialising its arguments anew.

At every launch Triton inspects each argument to select the compiled kernel. The kernels of additive attention and of flash
have forty, and the host took longer to launch them than an H200 to run them. So the compiled kernel is cached by all that
selects it: dtype and alignment of the tensors, and every number by value.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

CACHE: dict[Hashable, Any] = {}
CACHE_SIZE = 4096
"""Size of the cache, which is cleared when full."""
NUMBER_TYPES = frozenset((int, float, bool, str, type(None)))
"""Argument types other than tensors: isinstance would take as long as the launch."""


def launch_cached(
    program: Any, grid: tuple[int, int, int], arguments: Mapping[str, Any], first: Sequence[Any] = (), /, **options: Any
) -> None:
    """Launch a kernel with its `first` arguments in order, and the rest by name."""
    values = [*first, *map(arguments.__getitem__, program.arg_names[len(first) :])]
    key = tuple(build_launch_key(program, values, options))
    compiled = CACHE.get(key)
    if compiled is not None:
        compiled[grid](*values)
        return
    compiled = program[grid](*values, **options)
    if compiled is not None:  # the interpreter compiles nothing
        if len(CACHE) >= CACHE_SIZE:
            CACHE.clear()
        CACHE[key] = compiled


def build_launch_key(program: Any, values: Sequence[Any], options: Mapping[str, Any]) -> list[Hashable]:
    """Cache key of a launch: numbers by value, tensors by dtype, in a tuple if not aligned.

    Tensors may come in tuples with their strides. A kernel is identified by its function: Triton would hash its source,
    behind a lock.
    """
    lead = values[0][0] if values[0].__class__ is tuple else values[0]
    key = [program.fn, lead.device, *options.values()]
    add = key.append
    for value in values:  # one loop without function calls: it runs at every launch
        if value.__class__ in NUMBER_TYPES:
            add(value)
        elif value.__class__ is tuple:
            add((tuple, len(value)))
            for part in value:
                add(part if part.__class__ in NUMBER_TYPES else part.dtype if part.data_ptr() % 16 == 0 else (part.dtype,))
        else:
            add(value.dtype if value.data_ptr() % 16 == 0 else (value.dtype,))
    return key
