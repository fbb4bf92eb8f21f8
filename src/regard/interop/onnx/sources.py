"""Random sources for export and parity checks, and the size limits of the sources of a model."""

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
"""Least number of tokens, rows and columns of an example: compilers specialise 1."""


class Sizes(NamedTuple):
    """Sizes of an example: sources, beams of each, tokens of each source, and tokens of the prefix.

    For pictures, `keys` are the rows of a feature map, and `columns` its columns.
    """

    sources: int = 2
    beams: int = 3
    keys: int = 5
    written: int = 4
    columns: int = 4


class Field(NamedTuple):
    """Largest feature map of a picture in rows and columns, and its stride in pixels."""

    rows: int
    columns: int
    stride: int

    @property
    def pixels(self) -> tuple[int, int]:
        """Largest height and width of a batch of pictures."""
        return self.rows * self.stride, self.columns * self.stride


Longest = int | Field
"""Maximum number of tokens of a source, or the largest feature map."""


def source_limit(config: TaskConfig) -> Longest:
    """Size limit of the sources of a task."""
    data = config.data
    if not isinstance(data, ImageTextData):
        tokens: int = data.max_source_length
        return tokens
    stride: int = config.model.stride
    return Field(-(-data.height // stride), -(-data.width // stride), stride)


def default_sizes(most: Longest) -> Sizes:
    """Sizes of the example for export: below the limit, and at least two tokens, rows and columns."""
    if isinstance(most, int):
        return Sizes(keys=min(Sizes().keys, below_limit(most)))
    return Sizes(keys=min(Sizes().keys - 2, below_limit(most.rows)), columns=min(Sizes().columns, below_limit(most.columns)))


def limit_sizes(sizes: Sizes, most: Longest) -> Sizes:
    """Clip sizes to the limit of a model."""
    if isinstance(most, int):
        return sizes._replace(keys=min(sizes.keys, most))
    return sizes._replace(keys=min(sizes.keys, most.rows), columns=min(sizes.columns, most.columns))


def below_limit(most: int) -> int:
    """Upper bound of a dynamic dimension, below the limit: a position table used in full would make it static."""
    return max(most - 1, LEAST)


def random_source(model: Seq2Seq, sizes: Sizes, generator: torch.Generator) -> Source:
    """Random sources for a model: the first has the full size, others are smaller."""
    return _pictures(model, sizes, generator) if isinstance(model, Image2Seq) else _words(model, sizes, generator)


def vocabulary_size(part: Any) -> int:
    """Vocabulary size of an encoder or a decoder."""
    known: int = part.embedding.table.num_embeddings
    return known


def _words(model: Seq2Seq, sizes: Sizes, generator: torch.Generator) -> Padded:
    lengths = _lengths(sizes.keys, sizes.sources, generator)
    keep = torch.arange(sizes.keys)[None] < lengths[:, None]
    return Padded(torch.randint(vocabulary_size(model.encoder), keep.shape, generator=generator).masked_fill(~keep, 0), keep)


def _pictures(model: Image2Seq, sizes: Sizes, generator: torch.Generator) -> Images:
    assert isinstance(model.encoder, ImageEncoder), "it reads pictures"
    high, wide = sizes.keys * model.encoder.stride, sizes.columns * model.encoder.stride
    down, across = (
        torch.arange(side)[None] < _lengths(side, sizes.sources, generator)[:, None] for side in (high, wide)
    )  # each picture's pixels, in its top left corner
    keep = down[:, :, None] & across[:, None]
    data = torch.rand(sizes.sources, len(model.mean), high, wide, generator=generator)
    return Images(data.masked_fill(~keep[:, None], 0.0), keep)


def _lengths(most: int, count: int, generator: torch.Generator) -> Tensor:
    lengths = torch.randint(1, most + 1, (count,), generator=generator)
    lengths[0] = most
    return lengths
