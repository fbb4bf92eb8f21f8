"""Guided alignment: trains an attention towards word alignments of the training data.

The links are a Pharaoh file beside the training data, over the words of each pair. They are expanded to the tokens of each
word once, and stay with their record from then on: through sorting, cutting and dropping.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.alignment.heads import Head, parse_head
from regard.attention.module import Attention
from regard.attention.normalise import widen
from regard.attention.types import Attended
from regard.config import Train
from regard.data.records import Record
from regard.decoding.attention_weights import is_cross_attention

MIN_WEIGHT = 1e-6
"""Lower bound of a weight in the loss, so that a weight of exactly 0 costs much and not infinitely much."""


class Guide(NamedTuple):
    """Attention head that is guided, and the weight of its loss."""

    head: Head
    weight: float


def build_guide(settings: Train, model: nn.Module) -> Guide | None:
    """Build the guide of train.guided_alignment, or None; the model must have the head of train.guided_alignment_head."""
    if not settings.guided_alignment:
        return None
    head = parse_head(settings.guided_alignment_head)
    cross_attentions = {
        name: module for name, module in model.named_modules() if isinstance(module, Attention) and is_cross_attention(name)
    }
    attention = cross_attentions[head.attention_name(cross_attentions)]
    if head.head is not None:
        head.head_index(getattr(attention, "heads", 1))
    return Guide(head, settings.guided_alignment)


def guided_alignment_loss(
    attended: Mapping[str, Attended], records: Sequence[Record], keep: Bool[Tensor, "batch time"], head: Head
) -> Float[Tensor, ""]:
    """Cross-entropy of an attention against the links, summed over the kept tokens that have one.

        - Σ_t Σ_s A_ts log a_ts          A_ts: 1 / n where token t is linked to n tokens, s among them, else 0

    Chen et al. 2016, https://arxiv.org/abs/1607.01628; Liu et al. 2016, https://arxiv.org/abs/1609.04186
    Unlike theirs it is a sum, as all losses here are: the loop divides by the number of tokens.
    """
    all_weights = attended[head.attention_name(attended)].weights
    if all_weights is None or len(records) != len(keep):
        raise ValueError(f"guidance needs weights, and a record for each row, got {len(records)} for {len(keep)} rows")
    weights = widen(all_weights)  # batch heads time keys
    weights = weights.mean(1) if head.head is None else weights[:, head.head_index(weights.shape[1])]
    alignment = _build_target(records, weights.shape[1], weights.shape[2]).to(weights)
    return -(alignment * weights.clamp_min(MIN_WEIGHT).log()).sum(-1).masked_fill(~keep, 0.0).sum()


def _build_target(records: Sequence[Record], time: int, keys: int) -> Float[Tensor, "batch time keys"]:
    """Target distribution of each target token over the source tokens."""
    links = [(row, target, source) for row, record in enumerate(records) for source, target in record.links]
    table = torch.zeros(len(records), time, keys)
    if links:
        table[tuple(torch.tensor(links).T)] = 1.0
    return table / table.sum(-1, keepdim=True).clamp_min(1.0)
