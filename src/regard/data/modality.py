"""Protocols of a modality: what loading, training, search and prediction ask of a source and of a batch.

A modality is a folder of `data/`. Nothing outside that folder, its encoders, its tasks, its metrics, the viewer's drawing of
its axis and the converters of `interop` names its classes (tests/test_modalities.py): all else goes through this file.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.data.batch import Padded


@runtime_checkable
class Source(Protocol):
    """Collated sources: a named tuple of tensors, one row per source, which an encoder of this modality reads."""

    @property
    def data(self) -> Tensor: ...

    @property
    def keep(self) -> Tensor:
        """Padding mask: True where there is data."""

    @property
    def lengths(self) -> list[int] | None:
        """Lengths that bound those of the targets (`search.max_length_ratio`); None where a source says nothing of them."""

    def to(self, device: torch.device | str) -> "Source":
        """Copy on another device."""

    def select_rows(self, rows: Sequence[int]) -> "Source":
        """These sources, without the padding that none of them needs."""


@runtime_checkable
class AnyBatch(Protocol):
    """Batch of any modality: a named tuple whose tensors, except in `records`, are what the model and the loss read."""

    @property
    def source(self) -> Any:
        """The collated `Source`."""

    @property
    def target(self) -> Padded | None: ...

    @property
    def records(self) -> tuple[Any, ...]: ...

    @property
    def rows(self) -> int:
        """Number of rows: examples, unless packed rows hold several."""

    def to(self, device: torch.device | str) -> "AnyBatch":
        """Copy on another device."""

    def select_rows(self, rows: Sequence[int]) -> "AnyBatch":
        """These rows, without the padding that none of them needs: where memory is short, a batch is cut into parts."""

    def round_shape(self) -> "AnyBatch":
        """The batch with more padding, so that few shapes occur: each shape is captured as a CUDA graph of its own."""

    def unpack(self) -> "AnyBatch":
        """The batch with one example in each row."""


@runtime_checkable
class Batches(Protocol):
    """Endless batches by number: a pure function of the number, so that a training resumes from one integer."""

    def batch(self, step: int) -> AnyBatch: ...
