"""A program that does nothing, to see whether Triton can compile and start any."""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def nothing(given):
    """Where it stands, for nobody."""
    tl.program_id(0)


def start() -> None:
    """On the current device."""
    nothing[(1,)](2)
