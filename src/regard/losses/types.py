"""Records of a training loss and of the progress of training."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from torch import Tensor


class Progress(NamedTuple):
    """Progress of training: optimizer steps so far and in all, for losses that change with time."""

    step: int
    steps: int


class Loss(NamedTuple):
    """Loss of one batch: sums over tokens, never means, so that batches add up however they were split.

    `parts` are sums too, for the log alone.
    """

    total: Tensor
    tokens: int | Tensor
    parts: Mapping[str, float | Tensor] = MappingProxyType({})
