"""The weights of a model by name: out of it, and back into it when every name and shape agrees."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.errors import RefusedError


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and lasting buffer, on the CPU. A tensor with two names (tied weights) comes once, by its first."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in named_tensors(model).items()}


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Tensors of a model by name, where they are; tied ones once."""
    ids: set[int] = set()
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in ids:
            ids.add(id(tensor))
            tensors[name] = tensor
    return tensors


@torch.no_grad()
def restore(model: nn.Module, tensors: Mapping[str, Tensor], origin: str = "the checkpoint") -> None:
    """Put tensors back into a model; the first that does not fit is named, and then nothing is changed."""
    mine = named_tensors(model)
    check_shapes(mine, tensors, origin)
    for name, tensor in mine.items():
        tensor.copy_(tensors[name])


@runtime_checkable
class Shaped(Protocol):
    """A tensor, or what the header of a file says of one."""

    @property
    def shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...


def check_shapes(mine: Mapping[str, Tensor], tensors: Mapping[str, Shaped], origin: str) -> None:
    """Raise unless both have the same names, shapes and types."""
    another = f"{origin} is of another model: "
    for name, tensor in mine.items():
        if name not in tensors:
            raise RefusedError(f"{another}it has no {name}, which this model needs with shape {tuple(tensor.shape)}")
        if tensors[name].shape != tensor.shape:
            raise RefusedError(
                f"{another}{name} has shape {tuple(tensors[name].shape)} there and {tuple(tensor.shape)} here"
            )
        if tensors[name].dtype != tensor.dtype:
            raise RefusedError(f"{another}{name} has type {tensors[name].dtype} there and {tensor.dtype} here")
    for name, strange in tensors.items():
        if name not in mine:
            raise RefusedError(
                f"{another}it has {name} with shape {tuple(strange.shape)}, which this model has no place for"
            )
