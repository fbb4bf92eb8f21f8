"""The front of a beam search: the hypotheses that still grow, and all the ways in which they may."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.types import State
from regard.data.text.vocabulary import EOS
from regard.decoding.backpointers import Moment
from regard.decoding.logprobs import IMPOSSIBLE
from regard.decoding.max_length import device
from regard.decoding.topk import highest
from regard.tree import Tree, select


class Candidates(NamedTuple):
    """Hypotheses one token longer, best first; `rows` are those that they grew from. A score of -infinity is nobody's.

    The scores are sums of float32 in float64, so that they do not depend on the order in which a target is added up.
    """

    scores: Float[Tensor, "sentences candidates"]
    logprobs: Float[Tensor, "sentences candidates"]
    tokens: Int[Tensor, "sentences candidates"]
    rows: Int[Tensor, "sentences candidates"]

    @property
    def ending(self) -> Bool[Tensor, "sentences candidates"]:
        """Those that EOS has just ended."""
        return (self.tokens == EOS) & (self.scores > IMPOSSIBLE)

    def growing(self, beams: int) -> "Candidates":
        """The best `beams` that have not ended."""
        ended = self.tokens == EOS
        order = ended.int().argsort(dim=1, stable=True)[:, :beams]
        scores, logprobs, tokens, rows = (
            each.gather(1, order) for each in self._replace(scores=self.scores.masked_fill(ended, IMPOSSIBLE))
        )
        return Candidates(scores, logprobs, tokens, rows)


class Ways(NamedTuple):
    """What a step comes to: all candidates, which of the first of them have ended, and those that go on.

    In a search by groups, `groups` and `grown_groups` say of which group each candidate is.
    """

    ahead: Candidates
    ended: Bool[Tensor, "sentences first"]
    grown: Candidates
    groups: Int[Tensor, "sentences candidates"] | None = None
    grown_groups: Int[Tensor, "sentences grown"] | None = None


class Front(NamedTuple):
    """What the decoder is fed next: one memory for each sentence, `width` rows of tokens and state for each of them.

    In a search by groups, `groups` says of which group each row is; before the first token every row is of all.
    """

    sentences: list[int]
    scores: Float[Tensor, "sentences width"]
    moment: Moment
    memory: Tree
    state: State
    groups: Int[Tensor, "sentences width"] | None = None

    @property
    def width(self) -> int:
        """How many rows a sentence has."""
        return self.scores.shape[1]

    def ways(self, logs: Float[Tensor, "rows vocabulary"], beams: int) -> Ways:
        """One step of a plain search: of the `beams` best candidates some end; the `beams` best others go on."""
        ahead = self.extend(logs, beams)
        return Ways(ahead, ahead.ending[:, :beams], ahead.growing(beams))

    def extend(self, logs: Float[Tensor, "rows vocabulary"], beams: int) -> Candidates:
        """The best ways on: enough for `beams` hypotheses to go on if from each row one has ended.

        No row can contribute more than beams + 1 of them, so only those leave the device.
        """
        values, tokens = (each.cpu() for each in highest(logs, beams + 1))
        sentences, width = self.scores.shape
        totals = (self.scores.reshape(-1, 1) + values.double()).view(sentences, -1)
        scores, places = highest(totals, beams + width)
        rows = places // values.shape[1] + torch.arange(sentences)[:, None] * width
        return Candidates(
            scores,
            values.view(sentences, -1).gather(1, places),
            tokens.view(sentences, -1).gather(1, places),
            rows,
        )

    def move(
        self,
        grown: Candidates,
        staying: list[int],
        state: State,
        groups: Int[Tensor, "sentences grown"] | None = None,
    ) -> "Front":
        """The front after a step: the sentences that stay, with the rows of the state that their hypotheses grew from."""
        where, stay = device(self.memory), torch.tensor(staying)
        grown = Candidates(*(each[stay] for each in grown))
        width = int((grown.scores > IMPOSSIBLE).sum(1).max())
        scores, logprobs, tokens, rows = (each[:, :width] for each in grown)
        memory = self.memory if len(staying) == len(self.sentences) else select(self.memory, stay.to(where))
        return Front(
            [self.sentences[each] for each in staying],
            scores,
            Moment(tokens.flatten().tolist(), logprobs.flatten().tolist(), rows.flatten().tolist()),
            memory,
            select(state, rows.flatten().to(where)),
            None if groups is None else groups[stay][:, :width],
        )
