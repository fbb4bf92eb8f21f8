"""End-to-end memory network: hops of attention over the sentences of a story."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.normalise import Allowed, Scores, silence
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.padding import Padding
from regard.attention.score.dot import Dot
from regard.config import Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.encoding import SentenceEncoder, count_behind
from regard.tasks.answer.output import StoryAnswer


class LinearStart:
    """Normaliser that leaves the scores of some rows as they are, and is a softmax in all others.

    a = s where `linear`, else softmax(s). Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895
    Hops learn without their softmax at first.
    """

    sums_to_one = False

    def __init__(self, linear: Bool[Tensor, " batch"]):
        self.linear = linear

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        linear = self.linear[:, None, None, None]
        return torch.where(linear, silence(scores, allowed), Softmax()(scores, allowed))


class MemoryNetwork(nn.Module):
    """Hops of attention over sentences, each with what the hop before has read.

        m_i = Σ_j l_j ∘ A_k w_ij + T_A(i),    c_i = Σ_j l_j ∘ C_k w_ij + T_C(i),    u_1 = Σ_j l_j ∘ B q_j
        o_k = Σ_i softmax_i(u_kᵀ m_i) c_i,    u_{k+1} = u_k + o_k          adjacent tying:   A_{k+1} = C_k, B = A_1
                                              u_{k+1} = H u_k + o_k        layerwise tying:  one A, one C for all hops
        logits = W u_{K+1}

    Sukhbaatar et al. 2015, https://arxiv.org/abs/1503.08895
    T is indexed by the age of a sentence. Its noise: in training an empty memory follows each sentence with probability
    `noise`, which makes the sentences in front of it one older; unlike in the paper, nothing attends to it. W is a matrix
    of its own, since answers are classes and no words. With `nonlinear`, half of u has a ReLU between hops.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        size: int,
        *,
        hops: int = 3,
        tying: str = "adjacent",
        encoding: str = "position",
        temporal: bool = True,
        noise: float = 0.1,
        nonlinear: bool = False,
        limit: int = 128,
        dropout: float = 0.0,
        drop_embedding: float = 0.0,
        drop_output: float = 0.0,
    ):
        super().__init__()
        self.hops, self.adjacent, self.nonlinear = hops, tying == "adjacent", nonlinear
        self.noise, self.dropout = noise, dropout
        sets = hops + 1 if self.adjacent else 2
        self.encoder = SentenceEncoder(vocabulary, size, sets, encoding)
        self.T = nn.Parameter(0.1 * torch.randn(limit, sets, size)) if temporal else None
        self.H = nn.Identity() if self.adjacent else nn.Linear(size, size, bias=False)
        self.W = nn.Linear(size, answers, bias=False)
        nn.init.normal_(self.W.weight, std=0.1)
        self.drop_embedding, self.drop_output = nn.Dropout(drop_embedding), nn.Dropout(drop_output)

    def forward(self, stories: Stories, linear: Bool[Tensor, " batch"] | None = None, weights: bool = False) -> StoryAnswer:
        """Answer each question; `linear` is True where the hops have no softmax."""
        memory = self.encoder(stories.data)
        if self.T is not None:
            memory = memory + F.embedding(self.age(stories.keep), self.T.flatten(1)).view_as(memory)
        memory = self.drop_embedding(memory).transpose(1, 2)  # batch sets sentences size
        state = self.encoder(stories.question, slice(0, 1))
        normalise = Softmax() if linear is None else LinearStart(linear)
        read = []
        for hop in range(self.hops):
            first = hop if self.adjacent else 0
            attended = attend(
                state[:, None],
                memory[:, first, None],
                memory[:, first + 1, None],
                score=Dot(),
                normalise=normalise,
                scope=Padding(stories.keep),
                dropout=self.dropout if self.training else 0.0,
                offset=0,
                weights=True,
                impl="reference",  # a few dozen keys and one query: weights are formed in any case
            )
            assert attended.weights is not None
            state = self.H(state) + attended.context[:, 0]
            if self.nonlinear:
                rectified, straight = state.chunk(2, dim=-1)
                state = torch.cat((F.relu(rectified), straight), dim=-1)
            read.append(attended.weights[:, 0, 0])
        return StoryAnswer(self.W(self.drop_output(state[:, 0])), torch.stack(read, dim=1))

    def age(self, keep: Bool[Tensor, "batch sentences"]) -> Int[Tensor, "batch sentences"]:
        """Number of sentences behind each one, with the empty memories among them in training."""
        assert self.T is not None
        return count_behind(keep, self.noise if self.training else 0.0).clamp(0, len(self.T) - 1)


def build(model: AnswerModel, dropout: Dropout, vocabulary: int, answers: int, limit: int, words: int) -> MemoryNetwork:
    """The network that settings describe."""
    return MemoryNetwork(
        vocabulary,
        answers,
        model.hidden_size,
        hops=model.hops,
        tying=model.tying,
        encoding=model.sentence,
        temporal=model.temporal,
        noise=model.temporal_noise,
        nonlinear=model.nonlinear,
        limit=limit,
        dropout=dropout.attention,
        drop_embedding=dropout.embedding,
        drop_output=dropout.residual,
    )
