"""What the similarities of pictures and texts cost: each should be nearest to its own."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from regard.losses.classification import compute_credit
from regard.losses.types import Loss

Square = Float[Tensor, "batch batch"]


def contrastive(logits: Square, same: Bool[Tensor, "batch batch"] | None = None, hardest: int | None = None) -> Loss:
    """Row n and column n belong together: the cross-entropy of each row and of each column, half each.

        Σ_n -1/2 log softmax_j(logits_nj)_n - 1/2 log softmax_i(logits_in)_n

    Radford et al. 2021, https://arxiv.org/abs/2103.00020
    `same` is True where another pair belongs together too (two pictures with one text): those are no wrong answers, and are
    left out. With `hardest` only so many wrong answers count, the highest, in the spirit of Faghri et al. 2017,
    https://arxiv.org/abs/1707.05612, whose hinge has one. What is "right" is counted among all answers that are not left
    out, and those that are equally high share the credit.
    """
    checked(logits, same)
    if hardest is not None and hardest < 1:
        raise ValueError(f"hardest needs 1 wrong answer or more, got {hardest}; None lets all of them count")
    ways = (logits, same), (logits.mT, None if same is None else same.mT)
    total, right = logits.new_zeros(()), logits.new_zeros(())
    for rows, alike in ways:
        told = against(rows.float(), alike, hardest)
        total = (
            total + F.cross_entropy(told, torch.zeros(len(told), dtype=torch.long, device=told.device), reduction="sum") / 2
        )
        right = right + credited(rows.detach(), alike) / 2
    return Loss(total, len(logits), {"nll": total.detach(), "right": right})


def against(logits: Square, same: Bool[Tensor, "batch batch"] | None, hardest: int | None) -> Float[Tensor, "batch answers"]:
    """Each row's own answer first, then the wrong ones, the highest first, as many as count."""
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    wrong = logits.masked_fill(own if same is None else own | same, -torch.inf)
    most = len(logits) - 1 if hardest is None else min(hardest, len(logits) - 1)
    return torch.cat((logits.diagonal()[:, None], wrong.topk(most, dim=1).values), dim=1)


def credited(logits: Square, same: Bool[Tensor, "batch batch"] | None) -> Float[Tensor, ""]:
    """How many rows have their own answer highest."""
    number = torch.arange(len(logits), device=logits.device)
    if same is not None:
        logits = logits.masked_fill(same & (number != number[:, None]), -torch.inf)
    return compute_credit(logits, number).sum()


@torch.no_grad()
def hard(logits: Square, same: Bool[Tensor, "batch batch"] | None = None) -> tuple[Tensor, Tensor]:
    """The highest wrong column of each row, and the highest wrong row of each column: what a closer look is taught with.

    Where nothing is wrong, a row's own number.
    """
    checked(logits, same)
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    bar = own if same is None else own | same
    wrong, number = logits.float().masked_fill(bar, -torch.inf), torch.arange(len(logits), device=logits.device)
    return torch.where(bar.all(1), number, wrong.argmax(1)), torch.where(bar.all(0), number, wrong.argmax(0))


def checked(logits: Square, same: Bool[Tensor, "batch batch"] | None) -> None:
    """Raise unless there is one text for each picture, and a pair at all."""
    if logits.ndim != 2 or logits.shape[0] != logits.shape[1]:
        raise ValueError(f"as many texts as pictures are needed, in one order, got logits of shape {tuple(logits.shape)}")
    if len(logits) == 0:
        raise ValueError("pictures and texts are compared in batches of one pair or more, got none; leave empty batches out")
    if same is not None and same.shape != logits.shape:
        raise ValueError(f"`same` needs the shape of the logits, {tuple(logits.shape)}, got {tuple(same.shape)}")
