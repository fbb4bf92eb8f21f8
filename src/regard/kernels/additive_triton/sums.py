"""The gradients of both sides and of v, summed up from what flows into the scores, a chunk after the other."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.kernels.additive_triton import backward
from regard.kernels.additive_triton.arguments import Sides, Tiles, assembly, limit, padded, parts, power, processors
from regard.kernels.additive_triton.both import Found, Plan, both, plan
from regard.kernels.additive_triton.chunks import Chunk, beside
from regard.kernels.additive_triton.powers import Some, by_row
from regard.kernels.gpu.started import start


class Gradients(NamedTuple):
    """Of both sides, of the values where they took part, and of v."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch key_heads keys hidden"]
    value: Float[Tensor, "batch value_heads keys value"] | None
    v: Float[Tensor, "v_heads hidden"]


class Sums(NamedTuple):
    """Gradients of every head on its own, as far as they are summed up, and those of v."""

    query: Float[Tensor, "batch heads queries hidden"]
    key: Float[Tensor, "batch heads keys hidden"]
    v: Float[Tensor, "batch_heads hidden"]
    several: bool
    room: int
    """Bytes that a chunk may hold beside all of this."""

    @classmethod
    def of(cls, sides: Sides, several: bool, room: int) -> "Sums":
        """Nothing yet. Where several chunks of queries add to the keys', these are in single precision."""
        batch, groups = sides.query.shape[:2]
        shape, size = (batch, groups, *sides.key.shape[2:]), (batch * groups, sides.query.shape[3])
        query, single = torch.empty_like(sides.query), torch.float32
        if several:
            return cls(query, sides.key.new_zeros(shape, dtype=single), query.new_zeros(size, dtype=single), True, room)
        return cls(query, sides.key.new_empty(shape), query.new_empty(size, dtype=single), False, room)

    def gather(
        self,
        sides: Sides,
        slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
        chunk: Chunk,
        tiles: Tiles,
        hides: bool,
    ) -> None:
        """Add what flows into the scores of some heads and queries; `hides` says that whole tiles may have nothing."""
        dealt = plan(sides, slopes, tiles, hides, self.room)
        if dealt is not None:
            self.both(sides, slopes, chunk, dealt, tiles, hides)
            return
        sources, keys = sides.sources(chunk.heads), range(sides.key.shape[2])
        tall, wide = slopes.shape[1:]
        query = Side(Some(sides.query, chunk.heads, chunk.rows, tall), wide)
        key = Side(Some(sides.key, sources, keys, wide), 1)
        to_queries, to_keys = cut(self.query, chunk.heads, chunk.rows), cut(self.key, chunk.heads, keys)
        falls = gather(sides, query, key, to_queries, slopes, chunk, tiles, hides, self.room, v=True)
        lost = gather(sides, key, query, to_keys, slopes, chunk, tiles, hides, self.room, add=self.several)
        falls = torch.cat([falls, lost]) if len(lost) else falls
        to_v = self.v if len(chunk.heads) == len(self.v) else self.v[chunk.heads.start : chunk.heads.stop]
        if self.several:
            to_v += falls.sum(0)
        else:
            torch.sum(falls, 0, out=to_v)

    def both(
        self,
        sides: Sides,
        slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
        chunk: Chunk,
        dealt: Plan,
        tiles: Tiles,
        hides: bool,
    ) -> None:
        """The same in one pass, which writes what is whole into its place."""
        keys, (heads, _) = range(sides.key.shape[2]), chunk
        places = cut(self.query, *chunk), cut(self.key, heads, keys), self.v[heads.start : heads.stop]
        counts = dealt.tiles, dealt.shared, dealt.tiles * dealt.shared
        adds = False, self.several, self.several
        found = Found(
            *(
                place[None] if count == 1 and not add else self.v.new_empty(count, *place.shape)
                for place, count, add in zip(places, counts, adds, strict=True)
            )
        )
        both(sides, slopes, chunk, found, dealt, tiles, hides)
        for place, data, count, add in zip(places, found, counts, adds, strict=True):
            if count > 1 or add:
                put(place, data[0] if count == 1 else data.sum(0), add)

    def gradients(self, sides: Sides, value: Tensor | None) -> Gradients:
        """Of the inputs as they came: heads that share a key or a v add up."""
        v = self.v.view(self.query.shape[0], sides.v.shape[0], -1, self.v.shape[1]).sum((0, 2))
        return Gradients(self.query, grouped(self.key, sides.key), value, v.to(sides.v.dtype))


class Side(NamedTuple):
    """Queries or keys of a chunk, as one of the two axes of ds."""

    rows: Some
    stride: int
    """Along this axis of ds."""

    def arguments(self, one: str) -> dict[str, object]:
        """As the kernel names them, `one` of which is row or column."""
        return {
            f"{one}s_of": self.rows.data,
            f"{one}_base": self.rows.heads.start,
            f"{one}_heads": self.rows.data.shape[1],
            f"{one}_begin": self.rows.rows.start,
            f"{one}_count": len(self.rows.rows),
            f"{one}_pad": self.rows.tall,
            f"{one}_stride": self.stride,
        }


def width(sides: Sides, tiles: Tiles) -> int:
    """Hidden units of a tile on the way back."""
    return max(16, min(tiles.gather_units, power(sides.query.shape[3])))


def gather(
    sides: Sides,
    rows: Side,
    columns: Side,
    found: Float[Tensor, "some_heads some_rows hidden"],
    slopes: Float[Tensor, "some_heads padded_queries padded_keys"],
    chunk: Chunk,
    tiles: Tiles,
    hides: bool,
    room: int,
    v: bool = False,
    add: bool = False,
) -> Float[Tensor, "some_parts some_heads hidden"]:
    """Write the gradient of the rows into `found`, or add it.

    What comes back adds up to the gradient of v: Σ ds tanh with `v`, else what rounded exponentials made of it, if they are.
    """
    many, hidden, units = len(slopes), sides.query.shape[3], width(sides, tiles)
    panels, blocks = parts(hidden, units), rows.rows.tall // tiles.gather_rows
    powers = by_row(columns.rows, panels * units, units, held(sides, tiles))
    fits = beside([slopes, powers.data], many * len(rows.rows.rows) * hidden, room)
    several, reach = shared(blocks * panels * many, columns.rows.tall, tiles, slopes.device, fits)
    direct = several == 1 and not add
    place = found if direct else powers.reach.new_empty(several, many, len(rows.rows.rows), hidden)  # parts may cancel
    lost = not v and powers.data.dtype != torch.float32
    falls = powers.reach.new_empty(several * blocks if v or lost else 0, many, hidden)
    given = {
        **rows.arguments("row"),
        **columns.arguments("column"),
        "right": powers.data,
        "column_reach": powers.reach,
        "v": sides.v,
        "slopes": slopes,
        "found": place,
        "falls": falls,
        "base": chunk.heads.start,
        "heads": sides.query.shape[1],
        "v_heads": sides.v.shape[0],
        "R": rows.rows.data.shape[2],
        "C": columns.rows.data.shape[2],
        "D": hidden,
        "high": panels * units,
        "reach": reach,
        "part_stride": 0 if direct else place.stride(0),
        "head_stride": place.stride(-3),
        "ROWS": tiles.gather_rows,
        "COLUMNS": tiles.gather_columns,
        "UNITS": units,
        "PAIRS": tiles.gather_pairs,
        "PARTS": several,
        "ASSEMBLY": assembly(),
        "HIDDEN": hides,
        "FALLS": v,
        "LOST": lost,
    }
    start(backward.gather, (blocks, panels, many * several), given, num_warps=tiles.gather_warps, **limit(tiles.registers))
    if not direct:
        put(found, place[0] if several == 1 else place.sum(0), add)
    return falls


def held(sides: Sides, tiles: Tiles) -> torch.dtype:
    """The precision of exponentials, and of slopes in a place of their own, on the way back.

    An exponential loses by being bfloat16 what a number of 1/2 loses by it. Float16 has no room for e^{2x}. Where one pass
    finds all gradients no exponentials are held, and slopes are read once, so that they may stay single.
    """
    small = sides.query.dtype == sides.key.dtype == torch.bfloat16 and not tiles.both
    return torch.bfloat16 if small else torch.float32


def cut(data: Float[Tensor, "batch heads time hidden"], heads: range, rows: range) -> Float[Tensor, "some some_rows hidden"]:
    """Some heads, counted through the batch, and some rows of each; to cut nothing costs the host nothing."""
    flat = data.flatten(0, 1)
    whole = len(heads) == flat.shape[0] and len(rows) == flat.shape[1]
    return flat if whole else flat[heads.start : heads.stop, rows.start : rows.stop]


def put(place: Tensor, data: Tensor, several: bool) -> None:
    """Write what one chunk found, or add it to what others did."""
    if several:
        place += data
    else:
        place.copy_(data)


def shared(programs: int, columns: int, tiles: Tiles, device: torch.device, fits: int) -> tuple[int, int]:
    """Among how many programs the columns of a tile are spread, and how many each takes.

    As many as give a processor four, and as parts of the gradient `fits` says there is room for.
    """
    several = max(1, min(columns // tiles.gather_columns, 4 * processors(device) // programs, 8, fits))
    reach = padded(parts(columns, several), tiles.gather_columns)
    return parts(columns, reach), reach


def grouped(data: Float[Tensor, "batch heads time size"], like: Float[Tensor, "batch groups time size"]) -> Tensor:
    """The sum over the heads that share one."""
    groups = like.shape[1]
    if groups == data.shape[1]:
        return data.to(like.dtype)
    return torch.unflatten(data, 1, (groups, -1)).sum(2, dtype=torch.float32).to(like.dtype)
