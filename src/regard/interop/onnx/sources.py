"""Sources to try graphs with, and how large a model's own may be: texts of so many tokens, or pictures of so many pixels."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.config import ImageTextData
from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.data.modality import Source
from regard.models.encoders.backbones import ImageEncoder
from regard.models.image2seq import Image2Seq
from regard.models.seq2seq import Seq2Seq
from regard.tasks.kinds.types import TaskConfig

LEAST = 2
"""Of how many tokens, rows and columns a graph is drawn at least: one is special to a compiler."""


class Sizes(NamedTuple):
    """How large an example is: sources, beams of each, tokens of each source, and tokens that were written before.

    Of pictures, `keys` are the rows of a map, and `columns` its columns.
    """

    sources: int = 2
    beams: int = 3
    keys: int = 5
    written: int = 4
    columns: int = 4


class Field(NamedTuple):
    """The most rows and columns of a picture's map, and the pixels on a side of one place."""

    rows: int
    columns: int
    stride: int

    @property
    def pixels(self) -> tuple[int, int]:
        """The most that a batch of pictures is high and wide."""
        return self.rows * self.stride, self.columns * self.stride


Longest = int | Field
"""The most tokens of a source, or how large the map of a picture may be."""


def longest(config: TaskConfig) -> Longest:
    """How large the sources of a task may be."""
    data = config.data
    if not isinstance(data, ImageTextData):
        tokens: int = data.max_source_length
        return tokens
    stride: int = config.model.stride
    return Field(-(-data.height // stride), -(-data.width // stride), stride)


def usual(most: Longest) -> Sizes:
    """The sizes that a graph is drawn at: not the largest, and of two tokens, rows and columns at least."""
    if isinstance(most, int):
        return Sizes(keys=min(Sizes().keys, below(most)))
    return Sizes(keys=min(Sizes().keys - 2, below(most.rows)), columns=min(Sizes().columns, below(most.columns)))


def within(sizes: Sizes, most: Longest) -> Sizes:
    """The same sizes, as far as a model's sources may be so large."""
    if isinstance(most, int):
        return sizes._replace(keys=min(sizes.keys, most))
    return sizes._replace(keys=min(sizes.keys, most.rows), columns=min(sizes.columns, most.columns))


def below(most: int) -> int:
    """The most tokens, rows or columns that are spoken of: a table of places is taken whole for more, and looks special."""
    return max(most - 1, LEAST)


def drawn(model: Seq2Seq, sizes: Sizes, draw: torch.Generator) -> Source:
    """Random sources for a model, of which the first is as large as asked for, and others are smaller."""
    return _pictures(model, sizes, draw) if isinstance(model, Image2Seq) else _words(model, sizes, draw)


def vocabulary(part: Any) -> int:
    """How many tokens an encoder or a decoder knows."""
    known: int = part.embedding.table.num_embeddings
    return known


def _words(model: Seq2Seq, sizes: Sizes, draw: torch.Generator) -> Padded:
    lengths = _lengths(sizes.keys, sizes.sources, draw)
    keep = torch.arange(sizes.keys)[None] < lengths[:, None]
    return Padded(torch.randint(vocabulary(model.encoder), keep.shape, generator=draw).masked_fill(~keep, 0), keep)


def _pictures(model: Image2Seq, sizes: Sizes, draw: torch.Generator) -> Images:
    assert isinstance(model.encoder, ImageEncoder), "it reads pictures"
    high, wide = sizes.keys * model.encoder.stride, sizes.columns * model.encoder.stride
    down, across = (
        torch.arange(side)[None] < _lengths(side, sizes.sources, draw)[:, None] for side in (high, wide)
    )  # each picture's pixels, in its top left corner
    keep = down[:, :, None] & across[:, None]
    data = torch.rand(sizes.sources, len(model.mean), high, wide, generator=draw)
    return Images(data.masked_fill(~keep[:, None], 0.0), keep)


def _lengths(most: int, count: int, draw: torch.Generator) -> Tensor:
    lengths = torch.randint(1, most + 1, (count,), generator=draw)
    lengths[0] = most
    return lengths
