"""One compiled FlexAttention for each structure of scope, and never the unfused one in its place.

The compiler keeps a few versions of a function, recompile_limit of them, and beyond that runs it as it stands: for
FlexAttention that is an unfused path, over 50 times slower, which forms queries x keys. So every structure has a function
of its own, lengths are left open, a limit that is reached after all is an error, and the function refuses to run as it
stands.
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
"""The compiler's. Tests take one that needs no GPU."""
DYNAMIC: bool | None = None
"""None: lengths are built in until a second one is met, and open from then on; True: open from the first."""
MOST = 32
"""How many programs are compiled at most, each of which takes seconds."""

PROGRAMS: dict[Hashable, Callable[..., Tensor]] = {}
REFUSED: dict[Hashable, str] = {}
"""Why a structure is left to other kernels from now on."""


class UnfusedError(Exception):
    """FlexAttention is about to run without having been compiled."""


def program(key: Hashable) -> Callable[..., Tensor]:
    """The function of a structure, which is compiled when it first runs."""
    if key not in PROGRAMS:
        code = body.__code__.replace(co_name=f"flex_{len(PROGRAMS)}")  # the compiler counts versions by code
        own = FunctionType(code, body.__globals__, code.co_name)
        set_compiler_cache()
        PROGRAMS[key] = torch.compile(own, backend=BACKEND, dynamic=DYNAMIC, fullgraph=True)
    return PROGRAMS[key]


def refusal(key: Hashable) -> str | None:
    """Why there is no program for a structure, or None where there is or may be one."""
    if key in REFUSED:
        return REFUSED[key]
    if key not in PROGRAMS and len(PROGRAMS) >= MOST:
        return f"is compiled for at most {MOST} scopes and sizes, and this is another one"
    return None


def body(query: Tensor, keys: Tensor, values: Tensor, blocks: "BlockMask", scale: float | None, grouped: bool) -> Tensor:
    """What is compiled."""
    from torch.nn.attention.flex_attention import flex_attention

    if not torch.compiler.is_dynamo_compiling():
        raise UnfusedError("the compiler is switched off")
    found: Tensor = flex_attention(query, keys, values, block_mask=blocks, scale=scale, enable_gqa=grouped)
    return found
