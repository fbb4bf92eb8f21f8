"""Dynamic memory network (DMN+): episodes over the sentences of a story, read by a GRU whose gate is an attention."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.padding import Padding
from regard.config import Dropout
from regard.data.special_tokens import PAD
from regard.models.layers.cells import RepeatedLinear
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.encoding import QuestionEncoder, SentenceEncoder, reverse_rows, run_gru
from regard.tasks.answer.output import StoryAnswer


class Interaction(nn.Module):
    """Score of a sentence f for a question q and a memory m, given side by side as the query.

        z = [f ∘ q; f ∘ m; |f - q|; |f - m|],    s = w tanh(W z + b)

    Xiong, Merity and Socher 2016, https://arxiv.org/abs/1603.01417
    """

    def __init__(self, size: int):
        super().__init__()
        self.hidden = nn.Linear(4 * size, size)
        self.output = nn.Linear(size, 1)

    def prepare(self, key: Float[Tensor, "batch heads keys size"]) -> Float[Tensor, "batch heads keys size"]:
        """The sentences themselves."""
        return key

    def forward(
        self, query: Float[Tensor, "batch heads queries both"], prepared: Float[Tensor, "batch heads keys size"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        fact = prepared[:, :, None]
        question, memory = query[:, :, :, None].chunk(2, dim=-1)
        features = torch.cat((fact * question, fact * memory, (fact - question).abs(), (fact - memory).abs()), dim=-1)
        scores: Tensor = self.output(torch.tanh(self.hidden(features)))[..., 0]
        return scores


class AttentionGRU(nn.Module):
    """GRU whose update gate is the weight of each sentence; its last state is the context of an episode.

    h_i = g_i h̃_i + (1 - g_i) h_{i-1},    h̃_i = tanh(W f_i + r_i ∘ U h_{i-1}),    r_i = σ(W_r f_i + U_r h_{i-1})
    """

    def __init__(self, size: int):
        super().__init__()
        self.W = nn.Linear(size, 2 * size)
        self.U = nn.Linear(size, 2 * size)

    def forward(
        self, facts: Float[Tensor, "batch sentences size"], gates: Float[Tensor, "batch sentences"]
    ) -> Float[Tensor, "batch size"]:
        """Last state; padding has gate 0 and leaves the state as it is."""
        inputs = self.W(facts).transpose(0, 1).unbind(0)
        time, rows = facts.shape[1], facts.shape[0]
        recurrent = RepeatedLinear(self.U.bias.expand(time, rows, -1), self.U.weight)
        state = facts.new_zeros(rows, facts.shape[2])
        for step, gate in enumerate(gates[..., None].unbind(1)):
            reset, new = inputs[step].chunk(2, dim=-1)
            reset_state, new_state = recurrent(step, state).chunk(2, dim=-1)
            candidate = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
            state = torch.lerp(state, candidate, gate.to(state.dtype))
        return state


class DynamicMemory(nn.Module):
    """Input fusion, episodes of attention, and a memory that each episode updates.

        f_i = →GRU(x)_i + ←GRU(x)_i,    x_i: position-weighted words        input fusion
        g_i = softmax_i(score(f_i, [q; m_{k-1}])),    c_k = AttentionGRU(f, g)     episode k
        m_k = ReLU(W_k [m_{k-1}; c_k; q] + b_k),    m_0 = q
        logits = W_a [m_K; q]

    Xiong, Merity and Socher 2016, https://arxiv.org/abs/1603.01417
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        size: int,
        *,
        hops: int = 3,
        encoding: str = "position",
        drop_embedding: float = 0.0,
        drop_output: float = 0.0,
    ):
        super().__init__()
        self.encoder = SentenceEncoder(vocabulary, size, 1, encoding, deviation=0.5)
        self.question = QuestionEncoder(size)
        self.forwards, self.backwards = (nn.GRU(size, size, batch_first=True) for _ in range(2))
        self.score = Interaction(size)
        self.read = AttentionGRU(size)
        self.update = nn.ModuleList(nn.Linear(3 * size, size) for _ in range(hops))
        self.output = nn.Linear(2 * size, answers)
        self.drop_embedding, self.drop_output = nn.Dropout(drop_embedding), nn.Dropout(drop_output)

    def forward(self, stories: Stories, linear: Tensor | None = None, weights: bool = False) -> StoryAnswer:
        """Answer each question."""
        words = self.drop_embedding(self.encoder.embedding(stories.question))
        question = self.question(words, stories.question != PAD)
        facts = self.fuse(stories)
        memory, read = question, []
        for update in self.update:
            attended = attend(
                torch.cat((question, memory), dim=-1)[:, None, None],
                facts[:, None],
                facts[:, None],
                score=self.score,
                normalise=Softmax(),
                scope=Padding(stories.keep),
                offset=0,
                weights=True,
                impl="reference",
            )
            assert attended.weights is not None
            gates = attended.weights[:, 0, 0]
            memory = F.relu(update(torch.cat((memory, self.read(facts, gates), question), dim=-1)))
            read.append(gates)
        return StoryAnswer(self.output(self.drop_output(torch.cat((memory, question), dim=-1))), torch.stack(read, dim=1))

    def fuse(self, stories: Stories) -> Float[Tensor, "batch sentences size"]:
        """Sentences that know of those before and behind them."""
        sentences = self.drop_embedding(self.encoder(stories.data)[:, :, 0])
        forwards = run_gru(self.forwards, sentences)
        backwards = run_gru(self.backwards, reverse_rows(sentences, stories.keep))
        fused = forwards + reverse_rows(backwards, stories.keep)
        return self.drop_embedding(fused.masked_fill(~stories.keep[..., None], 0.0))


def build(model: AnswerModel, dropout: Dropout, vocabulary: int, answers: int, limit: int, words: int) -> DynamicMemory:
    """The network that settings describe."""
    return DynamicMemory(
        vocabulary,
        answers,
        model.hidden_size,
        hops=model.hops,
        encoding=model.sentence,
        drop_embedding=dropout.embedding,
        drop_output=dropout.residual,
    )
