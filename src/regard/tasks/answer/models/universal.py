"""Universal Transformer over sentences: the question and the sentences of a story attend to each other, step after step."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Encoded
from regard.config import Dropout
from regard.data.special_tokens import PAD
from regard.models.layers.transformer import Sublayers
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.encoding import MaskedEncoder, count_behind
from regard.tasks.answer.output import StoryAnswer


class UniversalTransformer(nn.Module):
    """One layer of self-attention and feed-forward, applied `hops` times to the question and the sentences.

        x_0 = question, x_i = sentence i + T(i),    x <- layer(x + S_k)    k = 1 ... K,    logits = W norm(x_0)

    Dehghani et al. 2019, https://arxiv.org/abs/1807.03819, without adaptive computation time
    T is indexed by the age of a sentence, with the random noise of memory networks, and S by the step; both are learned. A
    hop is what the question attends to in a step, the mean of the heads.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        size: int,
        *,
        hops: int = 3,
        heads: int = 4,
        words: int = 48,
        limit: int = 128,
        noise: float = 0.0,
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=0.3)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0.0
        self.story, self.question = MaskedEncoder(size, words, 0.5), MaskedEncoder(size, words, 0.5)
        self.T, self.S = nn.Parameter(0.3 * torch.randn(limit, size)), nn.Parameter(0.1 * torch.randn(hops, size))
        sublayers = Sublayers(size, heads, drop_residual=drop_residual, drop_attention=drop_attention)
        self.attention = sublayers.build_self_attention()
        self.feedforward = sublayers.build_feedforward()
        self.around_attention, self.around_feedforward = sublayers.build_residual(), sublayers.build_residual()
        self.norm = sublayers.build_final_norm()
        self.output = nn.Linear(size, answers)
        self.noise, self.drop = noise, nn.Dropout(drop_embedding)

    def forward(self, stories: Stories, linear: Tensor | None = None, weights: bool = False) -> StoryAnswer:
        """Answer each question; hops are known where `weights` are asked for."""
        data, keep = self.embed(stories)
        read = []
        for step in self.S:
            data = data + step
            entered = Encoded(self.around_attention.normalise_input(data, keep), keep)
            attended, _ = self.attention.attend_self(entered, weights=weights)
            data = self.around_attention.add(data, attended.context)
            entered_feedforward = self.around_feedforward.normalise_input(data, keep)
            data = self.around_feedforward.add(data, self.feedforward(entered_feedforward))
            if attended.weights is not None:
                sentences = attended.weights.mean(1)[:, 0, 1:]
                read.append(sentences / sentences.sum(-1, keepdim=True).clamp_min(1e-9))
        return StoryAnswer(self.output(self.norm(data[:, 0])), torch.stack(read, dim=1) if weights else None)

    def embed(self, stories: Stories) -> tuple[Float[Tensor, "batch time size"], Bool[Tensor, "batch time"]]:
        """Vectors of the question and, behind it, of the sentences with their ages."""
        sentences = self.story(self.embedding(stories.data)) + F.embedding(self.age(stories.keep), self.T)
        question = self.question(self.embedding(stories.question))
        data = self.drop(torch.cat((question[:, None], sentences), dim=1))
        return data, F.pad(stories.keep, (1, 0), value=True)

    def age(self, keep: Bool[Tensor, "batch sentences"]) -> Int[Tensor, "batch sentences"]:
        """Number of sentences behind each one, with noise in training."""
        return count_behind(keep, self.noise if self.training else 0.0).clamp(0, len(self.T) - 1)


def build(
    model: AnswerModel, dropout: Dropout, vocabulary: int, answers: int, limit: int, words: int
) -> UniversalTransformer:
    """The network that settings describe."""
    return UniversalTransformer(
        vocabulary,
        answers,
        model.hidden_size,
        hops=model.hops,
        heads=model.heads,
        words=words,
        limit=limit,
        noise=model.temporal_noise,
        drop_embedding=dropout.embedding,
        drop_residual=dropout.residual,
        drop_attention=dropout.attention,
    )
