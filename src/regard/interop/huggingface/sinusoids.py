"""Positions of other families: the same sinusoids in another order, and sinusoids of other wavelengths."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


def order(size: int) -> Int[Tensor, " size"]:
    """Index of our feature for each of theirs, where all sines come first: sine and cosine take turns in ours.

    A network does not care for the order of its features. So a model is not given other positions but its features in our
    order, in every matrix that reads or writes them (`names.py`).
    """
    return torch.cat((torch.arange(0, size, 2), torch.arange(1, size, 2)))


def spaced(rows: int, size: int, first: int) -> Float[Tensor, "rows size"]:
    """The sinusoids of M2M100 from position `first` on.

        PE(p)_i = sin(p / 10000^{i / (d/2 - 1)}),    PE(p)_{d/2 + i} = cos of the same

    Unlike those of Vaswani et al. 2017, section 3.5, the longest wave is 2π 10000 exactly. They are computed in float32, as
    the model's were when it was trained.
    """
    rates = torch.exp(torch.arange(size // 2).float() * -(math.log(10_000) / (size // 2 - 1)))
    angles = torch.arange(first, first + rows).float()[:, None] * rates
    waves = torch.cat((angles.sin(), angles.cos()), dim=1)
    return torch.nn.functional.pad(waves, (0, size % 2))
