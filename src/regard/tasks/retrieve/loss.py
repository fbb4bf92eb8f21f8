"""Losses of retrieval: contrastive for the dual encoder, hard negatives for the re-ranker."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.types import Encoded
from regard.losses.classification import compute_credit
from regard.losses.types import Loss
from regard.tasks.retrieve.reranker import Scored
from regard.tree import select

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
        answers = against(rows.float(), alike, hardest)
        first = torch.zeros(len(answers), dtype=torch.long, device=answers.device)
        total = total + F.cross_entropy(answers, first, reduction="sum") / 2
        right = right + credited(rows.detach(), alike) / 2
    return Loss(total, len(logits), {"nll": total.detach(), "right": right})


def against(logits: Square, same: Bool[Tensor, "batch batch"] | None, hardest: int | None) -> Float[Tensor, "batch answers"]:
    """Logits with each row's own answer first, then the highest wrong ones, as many as count."""
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    wrong = logits.masked_fill(own if same is None else own | same, -torch.inf)
    most = len(logits) - 1 if hardest is None else min(hardest, len(logits) - 1)
    return torch.cat((logits.diagonal()[:, None], wrong.topk(most, dim=1).values), dim=1)


def credited(logits: Square, same: Bool[Tensor, "batch batch"] | None) -> Float[Tensor, ""]:
    """Number of rows whose own answer is the highest."""
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


@runtime_checkable
class Scores(Protocol):
    """Something that scores pictures with texts, row by row."""

    def __call__(self, picture: Encoded, text: Encoded) -> Scored: ...


def reranking(
    score: Scores,
    picture: Encoded,
    text: Encoded,
    logits: Float[Tensor, "batch batch"],
    same: Bool[Tensor, "batch batch"] | None = None,
    share: Float[Tensor, ""] | None = None,
) -> Loss:
    """Re-ranking loss of each pair against its picture with the hardest wrong text, and its text with the hardest picture.

        -log softmax([s(p, t), s(p, t'), s(p', t)])_1

    t' and p' are what the towers' `logits` place highest among what is wrong; hard negatives from within the batch, as in
    Li et al. 2021, https://arxiv.org/abs/2107.07651, which draws them and asks yes or no of each pair.
    `share` is how much the closer look counts beside the towers, and learns that from the same pairs by the same loss with
    s = logits + share · s, in which it alone is learned: a look that has not learned much yet spoils nothing.
    """
    other_text, other_picture = hard(logits, same)
    own = torch.arange(len(logits), device=logits.device)
    pictures, texts = torch.cat((own, own, other_picture)), torch.cat((own, other_text, own))
    scores = score(select(picture, pictures), select(text, texts)).scores.float().view(3, -1)
    alone = torch.stack((own != own, other_text == own, other_picture == own))
    wanted: Int[Tensor, " batch"] = torch.zeros_like(own)
    masked = scores.masked_fill(alone, -torch.inf).mT  # where a batch has no wrong one
    total = F.cross_entropy(masked, wanted, reduction="sum")
    parts = {"nll": total.detach(), "right": compute_credit(masked.detach(), wanted).sum()}
    if share is not None:
        both = logits.detach().float()[pictures, texts].view(3, -1) + share * scores.detach()
        total = total + F.cross_entropy(both.masked_fill(alone, -torch.inf).mT, wanted, reduction="sum")
    return Loss(total, len(logits), parts)
