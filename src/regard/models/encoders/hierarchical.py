"""Hierarchical encoder of long texts: words in sentences, sentences in a document."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.models.encoders import unpack_source
from regard.models.encoders.recurrent import run_layer
from regard.models.layers.cells import build_cells, stack_states
from regard.models.layers.dropout import Drop
from regard.models.layers.embedding import Embedding

LONGEST_SENTENCE = 64
"""Words of a sentence; a longer one is read as several, so that texts without a full stop take no longer."""


class Sentences(NamedTuple):
    """Sentence of each word, the word's place in it, and the number of words of each sentence."""

    number: Int[Tensor, "batch time"]
    place: Int[Tensor, "batch time"]
    lengths: Int[Tensor, "batch sentences"]


class Hierarchical(nn.Module):
    """Hierarchical attention network as an encoder: one vector for each word, which knows its sentence's place.

        h_w = rnn(words of a sentence),      a_w = softmax_w(vᵀ tanh(W h_w + b)),    s = Σ_w a_w h_w
        r_s = rnn(s_1 ... s_n),              x_w = tanh(U [h_w; r_s(w)])

    Yang et al. 2016, section 2.2, https://aclanthology.org/N16-1174, with words as the output in place of one vector for
    the document, so that a decoder attends to words and copies them; their keys hold the sentence, as the word attention of
    Nallapati et al. 2016, https://arxiv.org/abs/1602.06023, is weighed by that of sentences. A sentence ends with a token of
    `ends`. Recurrences are as long as a sentence and as the number of sentences, so that a document of thousands of words is
    read in little time.
    """

    capturable = False
    """The number of sentences of a batch is known only to the host, so no CUDA graph can hold a training step."""

    def __init__(
        self,
        vocabulary: int,
        size: int,
        *,
        ends: Sequence[int] = (),
        embedding: int | None = None,
        layers: int = 1,
        cell: str = "lstm",
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        variational: bool = False,
    ):
        super().__init__()
        if size % 2:
            raise ValueError(f"a hierarchical encoder needs an even size, half for each direction, got {size}")
        self.embedding = Embedding(vocabulary, embedding or size, dropout=drop_embedding, variational=variational)
        self.size = size
        self.words = nn.ModuleList(
            build_cells(cell, size if number else self.embedding.size, size // 2, True) for number in range(layers)
        )
        self.sentences = build_cells(cell, size, size // 2, True)
        self.hidden, self.score = nn.Linear(size, size), nn.Linear(size, 1, bias=False)
        self.fit = nn.Linear(2 * size, size)
        self.drop = Drop(drop_residual, variational)
        marks = torch.zeros(vocabulary, dtype=torch.bool)
        marks[list(ends)] = True
        self.register_buffer("ends", marks)

    def forward(self, source: Padded) -> Encoded:
        tokens, keep = unpack_source(source, "hierarchical")
        split = split_sentences(cast(Tensor, self.ends)[tokens], keep)
        rows = keep.shape[0] * split.lengths.shape[1]
        first = torch.arange(keep.shape[0], device=keep.device)[:, None] * split.lengths.shape[1]
        row, place = (first + split.number)[keep], split.place[keep]
        used = split.lengths.flatten() > 0
        lengths = split.lengths.flatten()[used]
        data = self.embedding(tokens)
        inputs = data.new_zeros(rows, int(lengths.max()) if len(lengths) else 1, data.shape[2])
        inputs = inputs.index_put((row, place), data[keep])[used]
        for number, rnn in enumerate(self.words):
            inputs = self.drop(inputs) if number else inputs
            inputs, _ = run_layer(cast(nn.RNNBase, rnn), inputs, lengths.cpu())
        vectors = data.new_zeros(rows, self.size)
        vectors = vectors.index_put((used.nonzero()[:, 0],), self.pool(inputs, lengths))
        vectors = self.drop(torch.unflatten(vectors, 0, split.lengths.shape))
        counts = (split.lengths > 0).sum(1).clamp_min(1).cpu()
        outer, final = run_layer(self.sentences, vectors, counts)
        words = inputs[(used.cumsum(0) - 1)[row], place]
        output = data.new_zeros(*keep.shape, self.size)
        joined = torch.cat((words, outer.flatten(0, 1)[row]), dim=-1)
        output = output.masked_scatter(keep[..., None], torch.tanh(self.fit(joined)).to(output.dtype))
        return Encoded(output, keep, stack_states([final]), tokens=source.data, clean=True)

    def pool(
        self, words: Float[Tensor, "sentences time size"], lengths: Int[Tensor, " sentences"]
    ) -> Float[Tensor, "sentences size"]:
        """Vector of each sentence: the mean of its words by their attention weights."""
        real = torch.arange(words.shape[1], device=words.device) < lengths[:, None]
        scores = self.score(torch.tanh(self.hidden(words)))[..., 0].masked_fill(~real, -torch.inf)
        return (scores.softmax(-1)[..., None] * words).sum(1)


def split_sentences(ends: Bool[Tensor, "batch time"], keep: Bool[Tensor, "batch time"]) -> Sentences:
    """Sentences of rows of words: each begins after an end, or where it would be too long."""
    ruler = torch.arange(keep.shape[1], device=keep.device)
    begins = nn.functional.pad(ends[:, :-1], (1, 0), value=True)
    place = (ruler - ruler.where(begins, 0).cummax(1).values) % LONGEST_SENTENCE
    number = (begins | (place == 0)).cumsum(1) - 1
    count = int(number.max()) + 1 if number.numel() else 1
    lengths = torch.zeros(keep.shape[0], count, dtype=torch.long, device=keep.device)
    return Sentences(number, place, lengths.scatter_add(1, number, keep.long()))
