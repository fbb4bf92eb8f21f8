"""Compiled FlexAttention functions, one for each structure of a scope, which never run unfused.

The compiler keeps recompile_limit versions of a function, and beyond that runs it in eager mode: for FlexAttention that
is an unfused path, over 50 times slower, which forms queries x keys. So every structure has its own function with dynamic
lengths, reaching the limit is an error, and the function refuses to run in eager mode.
"""

from collections.abc import Callable, Hashable
from types import FunctionType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.user_cache import set_compiler_cache

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

BACKEND = "inductor"
"""Backend of torch.compile. Tests take one that needs no GPU."""
DYNAMIC: bool | None = None
"""Dynamic shapes. None: static until a second length occurs; True: dynamic from the first."""
MAX_PROGRAMS = 32
"""The most functions that are compiled; each takes seconds."""

PROGRAMS: dict[Hashable, Callable[..., Tensor]] = {}
REFUSED: dict[Hashable, str] = {}
"""Reasons of the structures whose compilation failed."""


class UnfusedError(Exception):
    """FlexAttention is about to run without having been compiled."""


def compile_program(key: Hashable) -> Callable[..., Tensor]:
    """The function of a structure, compiled when it first runs."""
    if key not in PROGRAMS:
        code = run_flex_attention.__code__.replace(co_name=f"flex_{len(PROGRAMS)}")  # the compiler counts versions by code
        own = FunctionType(code, run_flex_attention.__globals__, code.co_name)
        set_compiler_cache()
        PROGRAMS[key] = torch.compile(own, backend=BACKEND, dynamic=DYNAMIC, fullgraph=True)
    return PROGRAMS[key]


def find_refusal(key: Hashable) -> str | None:
    """The reason against compiling a structure, or None."""
    if key in REFUSED:
        return REFUSED[key]
    if key not in PROGRAMS and len(PROGRAMS) >= MAX_PROGRAMS:
        return f"is compiled for at most {MAX_PROGRAMS} scopes and sizes, and this is another one"
    return None


def run_flex_attention(
    query: Tensor, keys: Tensor, values: Tensor, blocks: "BlockMask", scale: float | None, grouped: bool
) -> Tensor:
    """FlexAttention call that is compiled."""
    from torch.nn.attention.flex_attention import flex_attention

    if not torch.compiler.is_dynamo_compiling():
        raise UnfusedError("the compiler is switched off")
    context: Tensor = flex_attention(query, keys, values, block_mask=blocks, scale=scale, enable_gqa=grouped)
    return context
