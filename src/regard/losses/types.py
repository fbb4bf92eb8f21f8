"""Records of a loss: what it costs, and where the training stands."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from torch import Tensor


class Progress(NamedTuple):
    """Where a training stands: updates done, and to be done in all. A loss that changes with time asks this."""

    step: int
    steps: int


class Loss(NamedTuple):
    """What one batch costs. Sums over tokens, never means: batches then add up, however they were cut.

    `parts` are sums too, for the log alone.
    """

    total: Tensor
    tokens: int | Tensor
    parts: Mapping[str, float | Tensor] = MappingProxyType({})
