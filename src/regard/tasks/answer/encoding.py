"""Encoding of sentences as vectors: sums of word vectors, weighted by position."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.special_tokens import PAD
from regard.models.layers.cells import UnrolledLayer, Vectors


class SentenceEncoder(nn.Module):
    """Sentences as position-weighted sums of their word vectors, in several sets of embeddings at once.

        x_i = Σ_j l_j ∘ w_ij,    l_kj = (1 - j/J) - (k/d) (1 - 2j/J)

    Sukhbaatar et al. 2015, section 4.1, https://arxiv.org/abs/1503.08895
    The J words of a sentence and the d numbers of a vector are counted from 1. Since l has rank two, two sums are enough,
    weighted by 1 - j/J and by 1 - 2j/J. With encoding="bag" l is 1.
    """

    def __init__(self, vocabulary: int, size: int, sets: int = 1, encoding: str = "position", deviation: float = 0.1):
        super().__init__()
        self.size, self.sets, self.encoding = size, sets, encoding
        self.embedding = nn.Embedding(vocabulary, sets * size, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=deviation)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0.0

    def forward(self, words: Int[Tensor, "*rows words"], sets: slice = slice(None)) -> Float[Tensor, "*rows sets size"]:
        """Vectors of the sentences, for some of the sets."""
        first, last, _ = sets.indices(self.sets)
        table = self.embedding.weight[:, first * self.size : last * self.size]
        vectors = F.embedding(words.flatten(0, -2), table)
        weights = self.position_weights(words.flatten(0, -2) != PAD).to(vectors.dtype)
        sums = (weights @ vectors).view(len(vectors), -1, last - first, self.size)
        shape = (*words.shape[:-1], last - first, self.size)
        if self.encoding == "bag":
            return sums[:, 0].view(shape)
        place = torch.arange(1, self.size + 1, device=words.device, dtype=sums.dtype) / self.size
        return (sums[:, 0] - place * sums[:, 1]).view(shape)

    def position_weights(self, keep: Bool[Tensor, "rows words"]) -> Float[Tensor, "rows parts words"]:
        """Weight of each word in the sums: 1 - j/J and 1 - 2j/J, or 1 in a bag."""
        real = keep.float()
        if self.encoding == "bag":
            return real[:, None]
        position = real.cumsum(-1) / real.sum(-1, keepdim=True).clamp_min(1.0)
        return torch.stack(((1 - position) * real, (1 - 2 * position) * real), dim=1)


class MaskedEncoder(nn.Module):
    """Sentence as the sum of its word vectors, each times a learned mask of its position: s = Σ_j f_j ∘ e_j."""

    def __init__(self, size: int, words: int, deviation: float = 0.0):
        super().__init__()
        self.mask = nn.Parameter(1 + deviation * torch.randn(words, size))

    def forward(self, vectors: Float[Tensor, "*rows words size"]) -> Float[Tensor, "*rows size"]:
        """Vectors of the sentences; padding is zero."""
        width = min(vectors.shape[-2], len(self.mask))  # words behind are padding
        return (vectors[..., :width, :] * self.mask[:width]).sum(-2)


class QuestionEncoder(nn.Module):
    """Question as the last state of a GRU over its words; padding leaves the state as it is."""

    def __init__(self, size: int):
        super().__init__()
        self.rnn = nn.GRU(size, size, batch_first=True)

    def forward(
        self, words: Float[Tensor, "batch words size"], keep: Bool[Tensor, "batch words"]
    ) -> Float[Tensor, "batch size"]:
        """State behind the last word."""
        states = run_gru(self.rnn, words)
        last = (keep.sum(1) - 1).clamp_min(0)
        return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2]))[:, 0]


def run_gru(rnn: nn.GRU, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch time size"]:
    """States of a GRU; step by step inside a CUDA graph, where cuDNN's own call is not captured."""
    if data.is_cuda and torch.cuda.is_current_stream_capturing():
        return unroll_gru(rnn, data)
    states: Tensor = rnn(data)[0]
    return states


def unroll_gru(rnn: nn.GRU, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch time size"]:
    """States of a GRU, one step after the other."""
    unrolled = UnrolledLayer(rnn, data)
    state: Vectors = (data.new_zeros(len(data), rnn.hidden_size),)
    states = []
    for step in range(data.shape[1]):
        state = unrolled(step, state)
        states.append(state[0])
    return torch.stack(states, dim=1)


def reverse_rows(
    data: Float[Tensor, "batch time size"], keep: Bool[Tensor, "batch time"]
) -> Float[Tensor, "batch time size"]:
    """Each row from its last position to its first; padding stays in place."""
    place = torch.arange(keep.shape[1], device=keep.device)[None]
    index = torch.where(keep, keep.sum(1, keepdim=True) - 1 - place, place)
    return data.gather(1, index[..., None].expand_as(data))


def count_behind(keep: Bool[Tensor, "batch sentences"], noise: float = 0.0) -> Int[Tensor, "batch sentences"]:
    """Age of each sentence: the number behind it, where an empty one follows each with probability `noise`."""
    real = keep.long()
    if noise:
        real = real + (torch.rand(keep.shape, device=keep.device) < noise) * real
    return real.flip(1).cumsum(1).flip(1) - real
