"""What a closer look at pairs costs: the right pair should score above those that are hardest to tell from it."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.types import Encoded
from regard.losses.classification import compute_credit
from regard.losses.types import Loss
from regard.tasks.retrieve.loss import hard
from regard.tasks.retrieve.reranker import Scored
from regard.tree import select


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
    """Each pair beside the same picture with the hardest wrong text, and the same text with the hardest wrong picture.

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
    told = scores.masked_fill(alone, -torch.inf).mT  # where a batch has no wrong one
    total = F.cross_entropy(told, wanted, reduction="sum")
    parts = {"nll": total.detach(), "right": compute_credit(told.detach(), wanted).sum()}
    if share is not None:
        both = logits.detach().float()[pictures, texts].view(3, -1) + share * scores.detach()
        total = total + F.cross_entropy(both.masked_fill(alone, -torch.inf).mT, wanted, reduction="sum")
    return Loss(total, len(logits), parts)
