"""Moment matching: distance in mean and scale of attention contexts from the source that they read."""

from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.mechanisms.memory_network import MemoryNetwork
from regard.attention.module import Attention
from regard.attention.per_head import repeat_heads
from regard.attention.types import Attended, Memory
from regard.models.decoders import DecoderMemory
from regard.models.seq2seq import Seq2Seq
from regard.models.types import Step

MIN_VARIANCE = 1e-12
"""Minimum variance: a scale of 0 has no gradient."""

Places = Float[Tensor, "batch time size"]
Mask = Bool[Tensor, "batch time"]


def compute_moments(data: Places, keep: Mask | None) -> tuple[Float[Tensor, "batch size"], Float[Tensor, "batch size"]]:
    """Mean and standard deviation of each feature over the kept positions of each sentence.

    μ = 1/n Σ_t x_t,    σ² = 1/n Σ_t (x_t - μ)²
    """
    data = data if data.dtype == torch.float64 else data.float()
    shares = data.new_ones(data.shape[:2]) if keep is None else keep.to(data.dtype)
    shares = (shares / shares.sum(1, keepdim=True).clamp_min(1))[..., None]
    mean = (shares * data).sum(1)
    return mean, (shares * (data - mean[:, None]).square()).sum(1).clamp_min(MIN_VARIANCE).sqrt()


def moment_distance(attended: Attended, attention: Attention, memory: Memory, keep: Mask) -> Float[Tensor, ""]:
    """Distance of one attention's contexts from its source in mean and standard deviation, over all sentences.

        Σ ||μ_c - μ_e||² + ||σ_c - σ_e||²

    with c the contexts of all kept steps of a sentence and e its kept positions, as this attention reads them: the context
    of one position alone. e is the target of the contexts, and gets no gradient.
    """
    context_moments = compute_moments(attended.context, keep)
    source_moments = compute_moments(list_single_contexts(attention, memory).detach(), memory.keep)
    mean, scale = (
        (contexts - sources).square().sum() for contexts, sources in zip(context_moments, source_moments, strict=True)
    )
    return mean + scale


def list_single_contexts(attention: Attention, memory: Memory) -> Places:
    """Context of each source position alone."""
    if isinstance(attention, MemoryNetwork):
        raise ValueError(
            "train.moment_matching compares what an attention finds with what it reads, and MemoryNetwork adds its question "
            "to that; set it to 0, or use another attention"
        )
    heads = getattr(attention, "heads", 1)
    values: Places = attention.output(attention.merge(repeat_heads(memory.values, heads).expand(-1, heads, -1, -1)))
    return values


def moment_matching_loss(model: nn.Module, step: Step, memory: DecoderMemory, keep: Mask) -> Float[Tensor, ""]:
    """Sum of moment distances over every cross-attention of a model."""
    attentions, attended = cast(Seq2Seq, model).attentions(), step.attended
    distances = [
        moment_distance(attended[name], attentions[name], attention_memory, keep)
        for name, attention_memory in memory.memories.items()
    ]
    return torch.stack(distances).sum()
