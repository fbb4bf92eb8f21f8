"""State of a beam search: the active hypotheses, and their extensions at a step."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.types import State
from regard.data.special_tokens import EOS
from regard.decoding.backpointers import SearchStep
from regard.decoding.logprobs import IMPOSSIBLE
from regard.decoding.max_length import find_device
from regard.decoding.topk import select_highest
from regard.tree import Tree, select


class Candidates(NamedTuple):
    """Candidates, hypotheses extended by one token, best first; `rows` are those extended. A score of -infinity is unused.

    The scores are sums of float32 in float64, so that they do not depend on the order of summation.
    """

    scores: Float[Tensor, "sentences candidates"]
    logprobs: Float[Tensor, "sentences candidates"]
    tokens: Int[Tensor, "sentences candidates"]
    rows: Int[Tensor, "sentences candidates"]

    @property
    def ending(self) -> Bool[Tensor, "sentences candidates"]:
        """Mask of those that EOS has just finished."""
        return (self.tokens == EOS) & (self.scores > IMPOSSIBLE)

    def growing(self, beams: int) -> "Candidates":
        """Best `beams` candidates that have not finished."""
        ended = self.tokens == EOS
        order = ended.int().argsort(dim=1, stable=True)[:, :beams]
        scores, logprobs, tokens, rows = (
            tensor.gather(1, order) for tensor in self._replace(scores=self.scores.masked_fill(ended, IMPOSSIBLE))
        )
        return Candidates(scores, logprobs, tokens, rows)


class Extensions(NamedTuple):
    """Extensions of a step: all candidates, which of the first of them have finished, and those that go on.

    In a search by groups, `groups` and `grown_groups` are the group of each candidate.
    """

    ahead: Candidates
    ended: Bool[Tensor, "sentences first"]
    grown: Candidates
    groups: Int[Tensor, "sentences candidates"] | None = None
    grown_groups: Int[Tensor, "sentences grown"] | None = None


class ActiveBeam(NamedTuple):
    """Active beam: next decoder input, with one memory per sentence and `width` rows of tokens and state for each.

    In a search by groups, `groups` is the group of each row; before the first token every row is of all.
    """

    sentences: list[int]
    scores: Float[Tensor, "sentences width"]
    input: SearchStep
    memory: Tree
    state: State
    groups: Int[Tensor, "sentences width"] | None = None

    @property
    def width(self) -> int:
        """Number of rows per sentence."""
        return self.scores.shape[1]

    def extend(self, logs: Float[Tensor, "rows vocabulary"], beams: int) -> Extensions:
        """Extensions in plain beam search: of the `beams` best candidates some finish; the `beams` best others go on."""
        ahead = self.select_candidates(logs, beams)
        return Extensions(ahead, ahead.ending[:, :beams], ahead.growing(beams))

    def select_candidates(self, logs: Float[Tensor, "rows vocabulary"], beams: int) -> Candidates:
        """Best extensions: enough for `beams` hypotheses to go on if one of each row has finished.

        No row can contribute more than beams + 1 of them, so only those leave the device.
        """
        values, tokens = (tensor.cpu() for tensor in select_highest(logs, beams + 1))
        sentences, width = self.scores.shape
        totals = (self.scores.reshape(-1, 1) + values.double()).view(sentences, -1)
        scores, places = select_highest(totals, beams + width)
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
    ) -> "ActiveBeam":
        """Next beam after a step: the remaining sentences, with the state rows that their hypotheses extend."""
        where, stay = find_device(self.memory), torch.tensor(staying)
        grown = Candidates(*(tensor[stay] for tensor in grown))
        width = int((grown.scores > IMPOSSIBLE).sum(1).max())
        scores, logprobs, tokens, rows = (tensor[:, :width] for tensor in grown)
        memory = self.memory if len(staying) == len(self.sentences) else select(self.memory, stay.to(where))
        return ActiveBeam(
            [self.sentences[index] for index in staying],
            scores,
            SearchStep(tokens.flatten().tolist(), logprobs.flatten().tolist(), rows.flatten().tolist()),
            memory,
            select(state, rows.flatten().to(where)),
            None if groups is None else groups[stay][:, :width],
        )
