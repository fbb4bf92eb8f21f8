"""Attentional reader: an encoder over all words of a story, and one attention of the question to them."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.config import Dropout
from regard.data.batch import Padded
from regard.data.special_tokens import PAD
from regard.models.attention_factory import attention_options, build_attention
from regard.models.encoders.recurrent import Recurrent
from regard.models.readout import call_attention, require_attention
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.encoding import QuestionEncoder
from regard.tasks.answer.output import StoryAnswer


class Reader(nn.Module):
    """Recurrent encoder of the words of a story, attended to by the last state of a GRU over the question.

        h = encoder(w_1 ... w_T),    c = attention(q, h),    logits = W tanh(W_c [c; q])

    Hermann et al. 2015, https://arxiv.org/abs/1506.03340
    Any attention may stand in the place of theirs. The weight of a sentence is the sum of those of its words.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        size: int,
        *,
        attention: Callable[[int, int], Attention | None],
        layers: int = 1,
        cell: str = "gru",
        drop_embedding: float = 0.0,
        drop_output: float = 0.0,
    ):
        super().__init__()
        options = {"layers": layers, "cell": cell, "drop_embedding": drop_embedding, "drop_residual": drop_output}
        self.story = Recurrent(vocabulary, size, **options)  # type: ignore[arg-type]
        self.question = QuestionEncoder(size)
        self.attention = require_attention(attention(size, size), "the reader")
        self.merge = nn.Linear(self.attention.size + size, size)
        self.output = nn.Linear(size, answers)
        self.drop_output = nn.Dropout(drop_output)

    def forward(self, stories: Stories, linear: Tensor | None = None, weights: bool = False) -> StoryAnswer:
        """Answer each question."""
        batch, sentences, words = stories.data.shape
        flat = stories.data.view(batch, sentences * words)
        order = torch.argsort((flat == PAD).long(), dim=1, stable=True)  # words first, padding behind
        tokens = flat.gather(1, order)
        encoded = self.story(Padded(tokens, tokens != PAD))
        question = self.question(self.story.embedding(stories.question), stories.question != PAD)
        attended = call_attention(self.attention, question[:, None], self.attention.remember(encoded), weights=True)
        assert attended.weights is not None
        state = torch.tanh(self.merge(torch.cat((attended.context[:, 0], question), dim=-1)))
        mean = attended.weights.mean(1)[:, 0]
        hops = mean.gather(1, torch.argsort(order, dim=1)).view(batch, sentences, words).sum(-1)
        return StoryAnswer(
            self.output(self.drop_output(state)), hops[:, None], {"words": attended.weights} if weights else {}
        )


def build(model: AnswerModel, dropout: Dropout, vocabulary: int, answers: int, limit: int, words: int) -> Reader:
    """The network that settings describe."""
    part = model.attention
    return Reader(
        vocabulary,
        answers,
        model.hidden_size,
        attention=partial(build_attention, part.name, **attention_options(part), dropout=dropout.attention),
        layers=model.layers,
        cell=model.cell,
        drop_embedding=dropout.embedding,
        drop_output=dropout.residual,
    )
