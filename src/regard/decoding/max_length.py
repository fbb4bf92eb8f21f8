"""How many sentences there are to decode, and how long each may become."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.image.batch import Pictures
from regard.models.types import Source
from regard.tree import Tree, leaves


def first_tensor(memory: Tree) -> Tensor:
    """Any tensor of the memory: its rows are the sentences, its device is where the decoder works."""
    for tensor in leaves(memory, Tensor):
        return tensor
    raise ValueError(f"decoding needs a memory with a tensor in it, got {memory!r}; decoder.remember(encoded) makes one")


def device(memory: Tree) -> torch.device:
    """Where the memory lives."""
    return first_tensor(memory).device


def longest(source: int, most: int, times: float = 3.0) -> int:
    """The most tokens of the output to a source of so many: so many times that and ten more, and never above `most`.

    Where `times` is 0, it is `most`.
    """
    return min(most, int(times * source) + 10) if times else most


def lengths(source: Source, most: int, times: float = 3.0) -> list[int]:
    """The most tokens of the output to each of several sources; how large a picture is says nothing of that."""
    if isinstance(source, Pictures):
        return [most] * len(source.data)
    return [longest(int(length), most, times) for length in source.keep.sum(1).tolist()]


def limits(length: int | Sequence[int], memory: Tree) -> list[int]:
    """The most tokens that each sentence may get, EOS included: one number for all, or one for each."""
    sentences = first_tensor(memory).shape[0]
    each = [length] * sentences if isinstance(length, int) else [int(one) for one in length]
    if len(each) != sentences:
        raise ValueError(f"length needs one number, or one for each of the {sentences} sentences, got {len(each)}")
    if any(one < 0 for one in each):
        raise ValueError(f"length needs to be 0 or more tokens, got {min(each)}")
    return each
