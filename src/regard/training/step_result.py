"""What an update came to: figures that the device is asked for at once and that are waited for when they are wanted."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from regard.losses.types import Loss


class Figures(NamedTuple):
    """Per token, but for the tokens themselves and the length of the gradient."""

    loss: float
    tokens: int
    length: float
    parts: Mapping[str, float]


class Outcome:
    """The loss of an update and the length of its gradient, on their way from the device in one go."""

    def __init__(self, loss: Loss, norm: Tensor):
        self.names = list(loss.parts)
        values = [loss.total, loss.tokens, norm, *(loss.parts[name] for name in self.names)]
        on = loss.total.device
        found = torch.stack([torch.as_tensor(value, dtype=torch.float32, device=on).detach() for value in values])
        self.arrived = None
        if on.type == "cuda":  # into pinned memory, or the host would wait here
            found = torch.empty(found.shape, dtype=found.dtype, pin_memory=True).copy_(found, non_blocking=True)
            self.arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.arrived.record(torch.cuda.current_stream(on))
        self.values = found

    def fetch(self) -> Figures:
        """The figures, waited for."""
        if self.arrived is not None:
            self.arrived.synchronize()
        total, tokens, length, *parts = self.values.tolist()
        count = max(tokens, 1.0)
        each = {name: value / count for name, value in zip(self.names, parts, strict=True)}
        return Figures(total / count, int(tokens), length, each)
