"""Launch the kernels of the way there: many queries, their weights, and one query alone."""

from typing import Any, NamedTuple

import torch
import triton
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton import forward, step
from regard.kernels.additive_triton.arguments import Dropped, Scoped, Sides, Tiles, assembly, heads, on
from regard.kernels.gpu.tiles import largest


def attend(
    sides: Sides,
    value: Float[Tensor, "batch value_heads keys value"],
    compared: dict[str, Any],
    scoped: Scoped,
    dropped: Dropped,
    dtype: torch.dtype,
    tiles: Tiles,
) -> tuple[Float[Tensor, "batch heads queries value"], Float[Tensor, "batch heads queries"]]:
    """Context, and log Σ e^s of every query."""
    (batch, groups, queries, _), size = sides.query.shape, value.shape[3]
    context = value.new_empty(batch, groups, queries, size, dtype=dtype)
    total = value.new_empty(batch, groups, queries, dtype=torch.float32)
    whole = max(16, min(tiles.values, triton.next_power_of_2(size)))

    def start(width: int) -> None:
        forward.attend[(triton.cdiv(queries, tiles.rows), batch * groups, triton.cdiv(size, width))](
            **compared,
            **scoped.arguments(),
            **dropped.arguments(),
            value=value.contiguous(),
            context=context,
            total=total,
            value_heads=value.shape[1],
            V=size,
            VALUES=width,
            PRECISION=tiles.precision,
        )

    widths = [whole >> halved for halved in range(whole.bit_length() - 4)]  # 16 is the least that is multiplied
    largest(start, widths, lambda width: need(width, value, tiles), value.device, ("additive", whole, value.dtype))
    return context, total


def need(width: int, value: Tensor, tiles: Tiles) -> int:
    """Bytes of shared memory that `attend` takes: a tile of values, and the shares that it is multiplied by."""
    return (width + tiles.rows) * tiles.columns * value.element_size()


def weigh(
    sides: Sides,
    compared: dict[str, Any],
    scoped: Scoped,
    total: Float[Tensor, "batch heads queries"] | None,
    dtype: torch.dtype,
    tiles: Tiles,
) -> Float[Tensor, "batch heads queries keys"]:
    """The weights, from log Σ e^s; without it the scores, less Σ v."""
    (batch, groups, queries, _), keys = sides.query.shape, sides.key.shape[2]
    weights = sides.query.new_empty(batch, groups, queries, keys, dtype=dtype)
    with on(weights):
        forward.weigh[(triton.cdiv(keys, tiles.columns), triton.cdiv(queries, tiles.rows), batch * groups)](
            **compared, **scoped.arguments(), total=total, weights=weights, SCORES=total is None
        )
    return weights


class Stepped(NamedTuple):
    """What one query reads, and its weights before and after dropout."""

    context: Float[Tensor, "batch heads 1 value"]
    weights: Float[Tensor, "batch heads 1 keys"]
    dropped: Float[Tensor, "batch heads 1 keys"]


def one_query(
    query: Float[Tensor, "batch heads 1 hidden"],
    key: Float[Tensor, "batch key_heads keys hidden"],
    value: Float[Tensor, "batch value_heads keys value"],
    v: Float[Tensor, "v_heads hidden"],
    scoped: Scoped,
    dropped: Dropped,
    dtype: torch.dtype,
    tiles: Tiles,
) -> Stepped:
    """One query: the keys are split so that every processor has some."""
    (batch, groups, _, hidden), keys, size = query.shape, key.shape[2], value.shape[3]
    some = share(batch * groups, keys, tiles.step_columns, query.device)
    splits = triton.cdiv(keys, some)
    context = value.new_empty(batch, groups, 1, size, dtype=dtype)
    scores, weights, after = (value.new_empty(batch, groups, 1, keys, dtype=torch.float32) for _ in range(3))
    tops, masses = value.new_empty(2, batch, groups, splits, dtype=torch.float32)
    shared = {"scores": scores, "tops": tops, "masses": masses, "S": keys, "V": size, **dropped.arguments()}
    shared |= {"parts": value.new_empty(batch, groups, splits, size, dtype=torch.float32)}
    shared |= {"VALUES": triton.next_power_of_2(size), "num_warps": tiles.step_warps}
    scope = scoped.arguments()
    scope.pop("mask_t")
    with on(value):
        step.split[(splits, batch * groups)](
            **shared,
            **scope,
            **heads(query, key, v),
            query=query.contiguous(),
            key=key.contiguous(),
            value=value.contiguous(),
            v=v.contiguous(),
            value_heads=value.shape[1],
            D=hidden,
            reach=some,
            COLUMNS=tiles.step_columns,
            UNITS=min(tiles.step_units, triton.next_power_of_2(hidden)),
            ASSEMBLY=assembly(),
        )
        step.join[(batch * groups,)](
            **shared,
            context=context,
            weights=weights,
            dropped=after,
            splits=splits,
            COLUMNS=128,
            SPLITS=triton.next_power_of_2(splits),
        )
    return Stepped(context, weights, after if dropped.rate else weights)


def share(groups: int, keys: int, tile: int, device: torch.device) -> int:
    """How many keys a program takes: whole tiles, and few enough that four programs a processor have work."""
    processors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
    splits = triton.cdiv(4 * processors, groups)
    return triton.cdiv(triton.cdiv(keys, splits), tile) * tile
