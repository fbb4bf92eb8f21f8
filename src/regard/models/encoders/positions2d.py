"""Two-dimensional positions of a feature map: half of the vector encodes the row, the other half the column.

They are added to a map, (batch, size, rows, columns), and so are not of the kinds in regard.attention.positions, which are
one-dimensional.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.masked_pool import Image
from regard.attention.positions.sinusoidal import encode_sinusoidal
from regard.attention.types import Encoded
from regard.models.encoders.feature_map import Mask

REACH = 64
"""Number of rows and columns that normalised positions scale a picture to."""


class GridPositions(nn.Module, ABC):
    """Base class of two-dimensional positions: adds a vector to each position of a map.

    PE(r, c) = [rows(r); columns(c)]
    """

    def __init__(self, size: int):
        super().__init__()
        if size < 2 or size % 2:
            raise ValueError(f"{type(self).__name__} needs an even size, half for rows and half for columns, got {size}")
        self.side = size // 2

    @abstractmethod
    def sides(self, keep: Mask) -> tuple[Float[Tensor, "#batch rows half"], Float[Tensor, "#batch columns half"]]:
        """The vectors of the rows, and those of the columns."""

    def forward(self, image: Image, keep: Mask) -> Image:
        down, across = (side.to(image.dtype).mT for side in self.sides(keep))
        _, half, rows = down.shape
        columns = across.shape[2]
        down, across = down[..., None].expand(-1, half, rows, columns), across[:, :, None].expand(-1, half, rows, columns)
        return image + torch.cat((down, across), dim=1)


class GridSinusoidal(GridPositions):
    """Sinusoidal positions along the rows and along the columns.

        rows(p)_{2i} = sin(p / 10000^{2i/h}),    rows(p)_{2i+1} = cos(p / 10000^{2i/h}),    h = size / 2

    Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762, in two directions as in Carion et al. 2020,
    https://arxiv.org/abs/2005.12872
    p is the index of the row, from 0. If `normalised`, p is the relative height of the row's middle in the picture, times
    64: the same part of a large and of a small picture has the same position.
    """

    def __init__(self, size: int, normalised: bool = False):
        super().__init__(size)
        self.normalised = normalised

    def sides(self, keep: Mask) -> tuple[Float[Tensor, "#batch rows half"], Float[Tensor, "#batch columns half"]]:
        down, across = (self.find_positions(keep.any(axis)) for axis in (2, 1))
        return encode_sinusoidal(down, self.side), encode_sinusoidal(across, self.side)

    def find_positions(self, keep: Tensor) -> Tensor:
        """Positions of the rows, or of the columns; `keep` is True for those in the picture."""
        places = torch.arange(keep.shape[1], device=keep.device)[None]
        return (places + 0.5) * REACH / keep.sum(1, keepdim=True).clamp_min(1) if self.normalised else places


class GridLearned(GridPositions):
    """Learned vectors for each of `limit` rows and each of `limit` columns.

        PE(r, c) = [table_rows[r]; table_columns[c]]

    Dosovitskiy et al. 2021 try such two-dimensional ones beside a table of all places, and find no difference,
    https://arxiv.org/abs/2010.11929
    """

    def __init__(self, size: int, limit: int = 128):
        super().__init__(size)
        self.limit = limit
        self.rows, self.columns = nn.Embedding(limit, self.side), nn.Embedding(limit, self.side)
        for table in (self.rows, self.columns):
            nn.init.normal_(table.weight, std=0.02)

    def sides(self, keep: Mask) -> tuple[Float[Tensor, "#batch rows half"], Float[Tensor, "#batch columns half"]]:
        _, rows, columns = keep.shape
        if max(rows, columns) > self.limit:
            raise ValueError(
                f"GridLearned has vectors for {self.limit} rows and columns, and met a map of {rows} x {columns}; build it "
                f"with limit={max(rows, columns)} or more, shrink the pictures, or use GridSinusoidal, which has no last row"
            )
        return self.rows.weight[None, :rows], self.columns.weight[None, :columns]


class GridTable(nn.Module):
    """Learned vector for each position of a map of fixed size.

        PE(r, c) = table[r, c]

    Dosovitskiy et al. 2021, section 3.1, https://arxiv.org/abs/2010.11929
    """

    def __init__(self, size: int, rows: int, columns: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(rows, columns, size))
        with torch.no_grad():
            self.table.normal_().mul_(0.02)

    def forward(self, image: Image, keep: Mask) -> Image:
        rows, columns, _ = self.table.shape
        if keep.shape[1:] != (rows, columns):
            raise ValueError(
                f"GridTable has vectors for a map of {rows} x {columns}, and met one of {keep.shape[1]} x {keep.shape[2]}; "
                "read every picture at one size (data.stretch=true), or choose other positions"
            )
        return image + self.table.permute(2, 0, 1).to(image.dtype)


def build_grid_positions(kind: str, size: int) -> GridPositions | None:
    """Build positions by name: "sinusoidal", "normalised" (sinusoidal, relative to the picture), "learned" or "none"."""
    if kind not in ("sinusoidal", "normalised", "learned", "none"):
        raise ValueError(f"positions on a map need to be sinusoidal, normalised, learned or none, got {kind!r}")
    if kind == "none":
        return None
    return GridLearned(size) if kind == "learned" else GridSinusoidal(size, kind == "normalised")


def add_positions(encoded: Encoded, positions: GridPositions | None) -> Encoded:
    """Add positions to an encoded feature map; None leaves it unchanged."""
    if positions is None or encoded.grid is None or encoded.keep is None:
        return encoded
    image, keep = torch.unflatten(encoded.data.mT, 2, encoded.grid), torch.unflatten(encoded.keep, 1, encoded.grid)
    return encoded._replace(data=positions(image, keep).flatten(2).mT)
