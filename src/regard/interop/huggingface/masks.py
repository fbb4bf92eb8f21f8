"""Mask function for models of transformers, beside the attention function.

Without one, transformers gives an attention function no mask at all: causal, padding and window masks would be dropped in
silence. The mask is boolean, True where a query may see a key, and None where a causal or full attention needs none. A mask
that leaves long runs of keys out, such as a sliding window over a long text, knows its tiles: ranges of queries and the
keys that they see. A model that changes the mask gets a plain one, whose tiles are not known, and the same result.

Some families of transformers do not support `sdpa`: they expect a mask that is added, or do not say which of their
attentions are causal. They get the mask of `eager`.
"""

import sys
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

TILE = 512
"""Queries of a tile."""
SHARE = 0.6
"""The largest share of scores for which tiles are worthwhile."""


BOOLEAN = frozenset(
    ("flint", "gemma2", "gpt_oss", "granite_swa", "granitemoe_swa", "mimo_v2_flash", "openai_privacy_filter", "t5gemma")
) | {"vaultgemma"}
"""Families that do not support `sdpa` for the sake of soft-capped scores or sinks alone, and take its mask."""


class Tile(NamedTuple):
    """A range of queries, and the range of keys that they see."""

    first_query: int
    last_query: int
    first_key: int
    last_key: int


def build_mask(*args: Any, **options: Any) -> Tensor | None:
    """The mask of `sdpa`, with its tiles where they are worthwhile; that of `eager` for a family that needs it."""
    from transformers.masking_utils import eager_mask, sdpa_mask

    if needs_added_mask(type(options.get("config")).__module__):
        added: Tensor | None = eager_mask(*args, **options)
        return added
    mask: Tensor | None = sdpa_mask(*args, **options)
    if mask is not None and not torch.compiler.is_compiling() and not mask.is_inference():  # such a mask has no version
        tiles = find_tiles(mask)
        if tiles is not None:
            mask.regard_tiles = tiles, mask._version  # type: ignore[attr-defined]
    return mask


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def needs_added_mask(module: str) -> bool:
    """True for a family, named by any module of its package, that does not support `sdpa`."""
    return _needs_added_mask(module)


@cache
def _needs_added_mask(module: str) -> bool:
    package = module.rpartition(".")[0]
    family = package.rpartition(".")[2]
    if not package.startswith("transformers.models.") or family in BOOLEAN:
        return False
    sources = [source for name, source in sys.modules.items() if name.startswith(f"{package}.modeling_")]
    models = [
        item
        for source in sources
        for item in vars(source).values()
        if isinstance(item, type) and item.__module__ == source.__name__
    ]
    known = [item._supports_sdpa for item in models if hasattr(item, "_supports_sdpa")]
    return bool(known) and not any(known)


def tiles_of(mask: Tensor) -> list[Tile] | None:
    """The tiles of a mask that knows them, and that nobody has written to since."""
    if torch.compiler.is_compiling() or not hasattr(mask, "regard_tiles"):
        return None
    tiles, version = mask.regard_tiles
    return tiles if version == mask._version else None


def find_tiles(mask: Tensor) -> list[Tile] | None:
    """The tiles of a boolean mask; None where they would save little, or the lengths are short."""
    queries, keys = mask.shape[-2:]
    if mask.ndim != 4 or mask.dtype != torch.bool or queries < 2 * TILE or keys < 2 * TILE:
        return None
    places = torch.arange(keys, device=mask.device)
    bounds = []
    for first in range(0, queries, TILE):
        columns = mask[:, :, first : first + TILE].flatten(0, 2).any(0)
        bounds.append(torch.stack([torch.where(columns, places, keys).min(), torch.where(columns, places, -1).max() + 1]))
    tiles = [
        Tile(first, min(first + TILE, queries), *((low, high) if low < high else (0, 1)))
        for first, (low, high) in zip(range(0, queries, TILE), torch.stack(bounds).tolist(), strict=True)
    ]
    scores = sum((tile.last_query - tile.first_query) * (tile.last_key - tile.first_key) for tile in tiles)
    return tiles if scores <= SHARE * queries * keys else None
