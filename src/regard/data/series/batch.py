"""Batches of windows: the look-back of each as the source, the horizon as the target."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.batch import Padded, map_tensors


class SeriesSource(NamedTuple):
    """Look-backs of equal length, scaled; a series that is shorter is padded on the left, where it has not begun."""

    data: Float[Tensor, "batch time targets"]
    """Values; 0 where they are missing, which `observed` tells apart from a value of 0."""
    keep: Bool[Tensor, "batch time"]
    """Padding mask: True where the series has begun."""
    observed: Bool[Tensor, "batch time targets"]
    """True where a value was there."""
    past: Float[Tensor, "batch time past"]
    """Covariates that are known up to the present."""
    known: Float[Tensor, "batch times known"]
    """Covariates and calendar features of the look-back and of the horizon, which are known ahead."""
    static: Int[Tensor, "batch static"]
    """Numbers of the static covariates in their vocabularies."""
    mean: Float[Tensor, "batch targets"]
    """Mean and scale of the values, fitted on the training rows: value = mean + scale * data."""
    scale: Float[Tensor, "batch targets"]

    @property
    def lengths(self) -> list[int] | None:
        """None: the horizon bounds a forecast, and not the look-back."""
        return None

    def to(self, device: torch.device | str) -> "SeriesSource":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    def select_rows(self, rows: Sequence[int]) -> "SeriesSource":
        """These windows."""
        return map_tensors(lambda tensor: tensor[list(rows)], self)

    def round_shape(self) -> "SeriesSource":
        """The windows themselves: all batches but the last one of an evaluation have one shape."""
        return self


class SeriesBatch(NamedTuple):
    """Windows: look-backs, horizons where they are known, and the window of each row."""

    source: SeriesSource
    target: Padded | None
    """Scaled values of the horizons; kept are the steps inside the series."""
    observed: Bool[Tensor, "batch horizon targets"] | None
    """True where a value of the horizon was there: only those count in a loss and in a metric."""
    records: tuple[Any, ...] = ()

    def to(self, device: torch.device | str) -> "SeriesBatch":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    @property
    def rows(self) -> int:
        """Number of windows."""
        return len(self.source.data)

    def select_rows(self, rows: Sequence[int]) -> "SeriesBatch":
        """These windows."""
        chosen = map_tensors(lambda tensor: tensor[list(rows)], self)
        return chosen._replace(records=tuple(self.records[row] for row in rows if self.records))

    def round_shape(self) -> "SeriesBatch":
        """The windows themselves."""
        return self

    def unpack(self) -> "SeriesBatch":
        """The windows themselves: each has a row of its own."""
        return self
