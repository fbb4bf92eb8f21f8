"""Recurrent entity network: blocks of memory that each sentence writes into by a gate, read once by the question."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.normalise.softmax import Softmax
from regard.attention.score.dot import Dot
from regard.config import Dropout
from regard.data.special_tokens import PAD
from regard.models.layers.cells import RepeatedLinear
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.encoding import MaskedEncoder
from regard.tasks.answer.output import StoryAnswer


class EntityNetwork(nn.Module):
    """Blocks h_j with keys w_j, updated by each sentence s and read by the question q.

        g_j = σ(sᵀ h_j + sᵀ w_j),    h̃_j = φ(U h_j + V w_j + W s),    h_j <- (h_j + g_j h̃_j) / |h_j + g_j h̃_j|
        p_j = softmax_j(qᵀ h_j),    u = Σ_j p_j h_j,    logits = R φ(q + H u)

    Henaff et al. 2017, https://arxiv.org/abs/1612.03969
    Keys are learned and no words; φ is a parametric ReLU that begins as the identity. Sentences are not attended to: their
    share in an answer is how far each opened the gates of the blocks that are read, Σ_j p_j g_j(t), which sums to one here.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        size: int,
        *,
        blocks: int = 20,
        words: int = 48,
        drop_embedding: float = 0.0,
        drop_output: float = 0.0,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=0.1)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0.0
        self.story, self.question = MaskedEncoder(size, words), MaskedEncoder(size, words)
        self.keys = nn.Parameter(0.1 * torch.randn(blocks, size))
        self.U, self.V, self.W, self.H = (nn.Linear(size, size, bias=False) for _ in range(4))
        for linear in (self.U, self.V, self.W, self.H):
            nn.init.normal_(linear.weight, std=0.1)
        self.activation, self.output_activation = nn.PReLU(size, init=1.0), nn.PReLU(size, init=1.0)
        self.R = nn.Linear(size, answers, bias=False)
        self.drop_embedding, self.drop_output = nn.Dropout(drop_embedding), nn.Dropout(drop_output)

    def forward(self, stories: Stories, linear: Tensor | None = None, weights: bool = False) -> StoryAnswer:
        """Answer each question."""
        sentences = self.story(self.embed(stories.data))
        question = self.question(self.embed(stories.question))
        blocks, gates = self.write(sentences, stories)
        attended = attend(
            question[:, None, None],
            blocks[:, None],
            blocks[:, None],
            score=Dot(),
            normalise=Softmax(),
            offset=0,
            weights=True,
            impl="reference",
        )
        assert attended.weights is not None
        share = (attended.weights[:, 0] @ gates)[:, 0]
        hops = (share / share.sum(-1, keepdim=True).clamp_min(1e-9))[:, None]
        state = self.output_activation(question + self.H(attended.context[:, 0, 0]))
        inner = {"blocks": attended.weights, "gates": gates[:, None]} if weights else {}
        return StoryAnswer(self.R(self.drop_output(state)), hops, inner)

    def embed(self, words: Int[Tensor, "*rows words"]) -> Float[Tensor, "*rows words size"]:
        """Vectors of words."""
        vectors: Tensor = self.drop_embedding(self.embedding(words))
        return vectors

    def write(
        self, sentences: Float[Tensor, "batch sentences size"], stories: Stories
    ) -> tuple[Float[Tensor, "batch blocks size"], Float[Tensor, "batch blocks sentences"]]:
        """Blocks behind the last sentence, and the gates of each sentence; padding opens none."""
        batch, time, size = sentences.shape
        count = len(self.keys)
        state = self.keys.expand(batch, count, size)
        inputs = self.W(sentences).transpose(0, 1)[:, :, None] + self.V(self.keys)
        recurrent = RepeatedLinear(inputs.reshape(time, batch * count, size), self.U.weight)
        match = sentences @ self.keys.T
        gates = list[Tensor]()
        for step, (sentence, keep) in enumerate(zip(sentences.unbind(1), stories.keep.unbind(1), strict=True)):
            opened = torch.sigmoid((state @ sentence[..., None])[..., 0] + match[:, step]) * keep[:, None]
            candidate = self.activation(recurrent(step, state.reshape(-1, size)).view(batch * count, size))
            state = F.normalize(torch.addcmul(state, opened[..., None], candidate.view(batch, count, size)), dim=-1)
            gates.append(opened)
        return state, torch.stack(gates, dim=2)


def build(model: AnswerModel, dropout: Dropout, vocabulary: int, answers: int, limit: int, words: int) -> EntityNetwork:
    """The network that settings describe."""
    return EntityNetwork(
        vocabulary,
        answers,
        model.hidden_size,
        blocks=model.blocks,
        words=words,
        drop_embedding=dropout.embedding,
        drop_output=dropout.residual,
    )
