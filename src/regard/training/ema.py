"""Averages of weights: over time while training, and over the last checkpoints at its end."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.errors import DamagedError, DamagedWarning, FailedError
from regard.training import checkpoint
from regard.training.state_dict import named_tensors


class WeightAverage:
    """The exponential moving average of a model's parameters, which often generalises better than their last values.

        e ← d e + (1 - d) w,   d = min(decay, (1 + n) / (10 + n)) at an update after n others, so 0.1 at the first

    Polyak and Juditsky 1992; the ramp, which forgets the random start sooner, is that of TensorFlow's moving averages.
    """

    def __init__(self, model: nn.Module, decay: float):
        if not 0 <= decay < 1:
            raise ValueError(f"train.ema_decay needs to be from 0 up to but not including 1, got {decay}")
        self.decay = decay
        self.values = {name: tensor.detach().clone() for name, tensor in trained_tensors(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module, n: int) -> None:
        """Take in the parameters of an update after n others."""
        decay = min(self.decay, (1 + n) / (10 + n))
        torch._foreach_lerp_(list(self.values.values()), list(trained_tensors(model).values()), 1 - decay)

    @contextmanager
    def inside(self, model: nn.Module) -> Iterator[None]:
        """Let the model have the averaged parameters for a while."""
        self.swap(model)
        try:
            yield
        finally:
            self.swap(model)

    def swap(self, model: nn.Module) -> None:
        """Exchange the model's parameters and these, without copying."""
        for name, tensor in trained_tensors(model).items():
            tensor.data, self.values[name] = self.values[name], tensor.data

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from saved values."""
        for name, value in self.values.items():
            value.copy_(tensors[name])


def trained_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters that are averaged: all that are trained."""
    return {name: tensor for name, tensor in named_tensors(model).items() if tensor.requires_grad}


def mean(tensors: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, summed in double precision; of whole numbers, the last."""
    last = tensors[-1]
    return {
        name: torch.stack([tensor[name].double() for tensor in tensors]).mean(0).to(value.dtype)
        if value.is_floating_point()
        else value
        for name, value in last.items()
    }


def mean_of_checkpoints(folder: Path, steps: Sequence[int]) -> dict[str, Tensor]:
    """The mean of the weights in these checkpoints; their moving averages where they have them.

    Vaswani et al. 2017, section 6.1: the last 5 or 20. One found damaged is left out, with a warning.
    """
    checkpoints = []
    for step in steps:
        try:
            checkpoints.append(saved_weights(checkpoint.load(folder / str(step)).tensors))
        except DamagedError as damage:
            warnings.warn(f"{damage}; the average does without it", DamagedWarning, stacklevel=2)
    if not checkpoints:
        raise FailedError(f"none of the checkpoints to average in {folder} is whole")
    return mean(checkpoints)


def saved_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in a checkpoint's tensors, with the moving average laid over them where there is one."""
    return part(tensors, "model.") | part(tensors, "ema.")


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Tensors whose name begins with `prefix`, named without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
