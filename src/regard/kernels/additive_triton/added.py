"""What several programs of `both` leave of one gradient, added up in its place: all three gradients by one launch."""

from typing import NamedTuple, no_type_check

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton.arguments import parts
from regard.kernels.gpu.started import start

BLOCK = 1024
"""Numbers of a program."""


class Left(NamedTuple):
    """Parts of a gradient, and where they go: numbers of a head lie beside each other. `add`: to what is there."""

    parts: Float[Tensor, "parts some_heads *size"]
    place: Float[Tensor, "some_heads *size"]
    add: bool

    @property
    def whole(self) -> bool:
        """Whether the only part is in its place already."""
        return len(self.parts) == 1 and not self.add

    def arguments(self, name: str) -> dict[str, object]:
        """As the kernel names them."""
        return {
            f"{name}_parts": self.parts,
            f"{name}_place": self.place,
            f"{name}_blocks": 0 if self.whole else parts(self.place.numel(), BLOCK),
            f"{name}_count": len(self.parts),
            f"{name}_size": self.place[0].numel(),
            f"{name}_step": self.place.stride(0),
            f"{name}_all": self.place.numel(),
            f"{name.upper()}_ADD": self.add,
        }


def added(query: Left, key: Left, v: Left) -> None:
    """Add up what is not whole."""
    given = {**query.arguments("query"), **key.arguments("key"), **v.arguments("v"), "BLOCK": BLOCK}
    programs = sum(given[f"{name}_blocks"] for name in ("query", "key", "v"))  # type: ignore[misc]
    if programs:
        start(add, (programs, 1, 1), given, num_warps=4)


@triton.jit(
    do_not_specialize=[
        "query_blocks", "key_blocks", "query_count", "key_count", "v_count", "query_size", "key_size", "v_size",
        "query_step", "key_step", "v_step", "query_all", "key_all", "v_all",
    ]
)  # fmt: skip
@no_type_check
def add(
    query_parts, query_place, key_parts, key_place, v_parts, v_place, query_blocks, key_blocks,
    query_count, query_size, query_step, query_all, key_count, key_size, key_step, key_all, v_count, v_size, v_step, v_all,
    QUERY_ADD: tl.constexpr, KEY_ADD: tl.constexpr, V_ADD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The first programs have the queries', then come the keys', then those of v."""
    number = tl.program_id(0)
    if number < query_blocks:
        block(query_parts, query_place, number, query_count, query_size, query_step, query_all, QUERY_ADD, BLOCK)
    elif number < query_blocks + key_blocks:
        block(key_parts, key_place, number - query_blocks, key_count, key_size, key_step, key_all, KEY_ADD, BLOCK)
    else:
        block(v_parts, v_place, number - query_blocks - key_blocks, v_count, v_size, v_step, v_all, V_ADD, BLOCK)


@triton.jit
@no_type_check
def block(parts, place, number, count, size, step, whole, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """Of `count` parts of `whole` numbers, `size` a head, which are `step` apart in their place."""
    cells = number.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = cells < whole
    found = tl.zeros((BLOCK,), tl.float32)
    for part in range(count):
        found += tl.load(parts + tl.cast(part, tl.int64) * whole + cells, mask=inside, other=0.0).to(tl.float32)
    place += cells // size * step + cells % size
    if ADD:
        found += tl.load(place, mask=inside, other=0.0).to(tl.float32)
    tl.store(place, found.to(place.dtype.element_ty), mask=inside)
