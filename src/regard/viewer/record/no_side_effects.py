"""A pass through a model that leaves no trace in it: no gradient, no draw, no switch that stays switched."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode and without gradients; afterwards, it and all generators are as before."""
    training = {module: module.training for module in model.modules()}
    devices = {each.device.index for each in model.parameters() if each.device.type == "cuda"}
    with torch.random.fork_rng(sorted(each or 0 for each in devices)), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, before in training.items():
                module.training = before
