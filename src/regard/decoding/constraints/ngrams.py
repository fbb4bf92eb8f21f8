"""N-gram blocking: a target in which no n-gram is repeated."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def mask_repeats(written: Int[Tensor, "rows time"], size: int, vocabulary: int) -> Bool[Tensor, "rows vocabulary"]:
    """Mask of the tokens that would repeat an n-gram of `size` tokens.

    Paulus, Xiong and Socher 2018, https://arxiv.org/abs/1705.04304, for groups of three.
    """
    rows, time = written.shape
    found = torch.zeros(rows, vocabulary, dtype=torch.bool, device=written.device)
    if time < size:
        return found
    groups = written.unfold(1, size, 1)  # (rows, groups, size)
    same = (groups[..., :-1] == written[:, None, time - size + 1 :]).all(-1)
    row, place = same.nonzero(as_tuple=True)
    found[row, groups[row, place, -1]] = True
    return found
