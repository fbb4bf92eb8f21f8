"""Maximum length of each target, and the number of sentences of a batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.modality import Source
from regard.tree import Tree, leaves

SLACK = 10
"""Tokens that an output may have beyond a multiple of its source's length."""


def find_tensor(memory: Tree) -> Tensor:
    """First tensor of the memory: its rows are the sentences, its device is the decoder's."""
    for tensor in leaves(memory, Tensor):
        return tensor
    raise ValueError(f"decoding needs a memory with a tensor in it, got {memory!r}; decoder.remember(encoded) makes one")


def find_device(memory: Tree) -> torch.device:
    """Device of the memory."""
    return find_tensor(memory).device


def limit_length(source: int, most: int, times: float = 3.0) -> int:
    """Maximum output length for a source length: `times` that length plus ten, and never above `most`.

    With `times` = 0, it is `most`.
    """
    return min(most, int(times * source) + SLACK) if times else most


def limit_lengths(source: Source, most: int, times: float = 3.0) -> list[int]:
    """Maximum output length for each of several sources; `most` where their lengths say nothing of their targets'."""
    lengths = source.lengths
    return [most] * len(source.data) if lengths is None else [limit_length(length, most, times) for length in lengths]


def resolve_limits(length: int | Sequence[int], memory: Tree) -> list[int]:
    """Maximum length of each sentence's target, EOS included: one number for all, or one for each."""
    sentences = find_tensor(memory).shape[0]
    limits = [length] * sentences if isinstance(length, int) else [int(limit) for limit in length]
    if len(limits) != sentences:
        raise ValueError(f"length needs one number, or one for each of the {sentences} sentences, got {len(limits)}")
    if any(limit < 0 for limit in limits):
        raise ValueError(f"length needs to be 0 or more tokens, got {min(limits)}")
    return limits
