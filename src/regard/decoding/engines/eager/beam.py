"""Beam search with its bookkeeping in NumPy arrays; equals `decoding.beam` for plain search."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.special_tokens import BOS, EOS
from regard.decoding.backpointers import make_empty_hypothesis
from regard.decoding.engines.eager.greedy import greedy
from regard.decoding.engines.eager.topk import TopTokens
from regard.decoding.engines.types import Array, Engine, Floats, Numbers, SearchEngine
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import IMPOSSIBLE, no_token_error
from regard.decoding.max_length import resolve_limits
from regard.tree import Tree, select


class Candidates(NamedTuple):
    """Candidates, (sentences, candidates) each, best first; `rows` are the hypotheses that they extend."""

    scores: Array
    logprobs: Array
    tokens: Array
    rows: Array

    def taken(self, order: Numbers) -> "Candidates":
        """Reorder the candidates of each sentence."""
        return Candidates(*(np.take_along_axis(tensor, order, 1) for tensor in self))

    def of(self, sentences: Numbers | NDArray[np.bool_]) -> "Candidates":
        """Candidates of these sentences."""
        return Candidates(*(tensor[sentences] for tensor in self))

    def first(self, count: int) -> "Candidates":
        """Best `count` of each sentence."""
        return Candidates(*(tensor[:, :count] for tensor in self))

    def growing(self, beams: int) -> "Candidates":
        """Best `beams` that have not finished."""
        ended = self.tokens == EOS
        grown = self._replace(scores=np.where(ended, IMPOSSIBLE, self.scores))
        return grown.taken(ended.argsort(1, kind="stable")[:, :beams])


def extend(scores: Floats, values: Array, tokens: Array, beams: int) -> Candidates:
    """Best extensions: enough for `beams` to go on if one of each row has finished; of equals the leftmost."""
    sentences, width = scores.shape
    per_row = values.shape[1]
    totals = (scores.reshape(-1, 1) + values).reshape(sentences, -1)
    places = np.argsort(-totals, axis=1, kind="stable")[:, : beams + width]
    rows = places // per_row + np.arange(0, sentences * width, width)[:, None]
    chosen = places + np.arange(0, totals.size, totals.shape[1])[:, None]
    return Candidates(totals.ravel()[chosen], values.ravel()[chosen], tokens.ravel()[chosen], rows)


ENDING = np.dtype(
    [
        ("step", "i8"),
        ("row", "i8"),
        ("token", "i8"),
        ("logprob", "f8"),
        ("score", "f8"),
        ("normalised", "f8"),
        ("finished", "?"),
    ]
)
"""Record of a finished hypothesis: step and row of its last token, the token, and its scores."""


class Pool:
    """Pool of `size` endings of each sentence, best first: finished ones before those that were cut off.

    A normalised score of -infinity marks an empty place. Of equal ones the earlier stands first.
    """

    def __init__(self, sentences: int, size: int):
        self.size = size
        self.endings = np.zeros((sentences, size), ENDING)
        self.endings["normalised"] = IMPOSSIBLE

    def add(self, sentences: Numbers, normalised: Floats, ended: Candidates, step: int) -> None:
        """Add hypotheses that finished at a step; a normalised score of -infinity is unused."""
        both = np.concatenate((self.endings[sentences], make_records(ended, normalised, step, finished=True)), axis=1)
        order = np.argsort(-both["normalised"], axis=1, kind="stable")[:, : self.size]
        self.endings[sentences] = np.take_along_axis(both, order, 1)

    def close(self, sentences: Numbers, grown: Candidates, share: float, step: int) -> None:
        """Add hypotheses that are cut off: they come after all finished ones, in the order given."""
        both = np.concatenate(
            (self.endings[sentences], make_records(grown, grown.scores / share, step, finished=False)), axis=1
        )
        order = np.argsort(both["normalised"] == IMPOSSIBLE, axis=1, kind="stable")[:, : self.size]
        self.endings[sentences] = np.take_along_axis(both, order, 1)

    def any(self, sentences: Numbers) -> NDArray[np.bool_]:
        """Mask of the sentences with any ending."""
        return self.worst(sentences, 1) > IMPOSSIBLE

    def worst(self, sentences: Numbers, count: int) -> Floats:
        """Score of the `count`-th best ending of each sentence; -infinity where there are fewer."""
        scores: Floats = self.endings["normalised"][sentences, count - 1]
        return scores

    def of(self, sentence: int) -> list[tuple[int, int, int, float, float, float, bool]]:
        """Endings of a sentence, best first, each as an ENDING record."""
        mine = self.endings[sentence]
        return list(mine[mine["normalised"] > IMPOSSIBLE].tolist())


def make_records(ended: Candidates, normalised: Floats, step: int, finished: bool) -> Array:
    """Convert candidates to ENDING records."""
    records = np.zeros(ended.tokens.shape, ENDING)
    records["step"], records["finished"], records["normalised"] = step, finished, normalised
    records["row"], records["token"] = ended.rows, ended.tokens
    records["logprob"], records["score"] = ended.logprobs, ended.scores
    return records


class BeamStep(NamedTuple):
    """Decoder input of a step: the token of each row, its log-probability, and its back-pointer."""

    tokens: Numbers
    logprobs: NDArray[np.float32]
    parents: Numbers


@torch.inference_mode()
def beam(
    engine: Engine,
    memory: Tree,
    *,
    beams: int,
    length: int | Sequence[int],
    best: int = 1,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Beam search: the `best` hypotheses of each sentence; `decoding.beam` explains it, and why the early stop is exact.

    A step costs the same few array operations whatever the number of sentences; sentences that are done leave the batch. A
    beam of one is greedy search, which needs fewer of them.
    """
    most = resolve_limits(length, memory)
    alive = np.flatnonzero(np.array(most))
    if len(alive) and len(alive) < len(most):
        memory = select(memory, torch.from_numpy(alive))
    if len(alive) and isinstance(engine, SearchEngine):
        several = engine.search(memory, np.array(most, dtype=np.int64)[alive], beams, best, length_penalty)
        hypotheses = dict(zip(alive.tolist(), several, strict=True))
        return [hypotheses.get(sentence) or [make_empty_hypothesis(weights=False)] for sentence in range(len(most))]
    search = ArrayBeamSearch(most, beams, best, length_penalty)
    if len(alive):
        if beams == 1:
            answers = dict(zip(alive.tolist(), greedy(engine, memory, search.most[alive], length_penalty), strict=True))
            return [[answers.get(sentence) or make_empty_hypothesis(weights=False)] for sentence in range(len(search.most))]
        for _ in search.run(engine, memory, alive):
            pass
    return [
        search.backtrace_best(sentence) or [make_empty_hypothesis(weights=False)] for sentence in range(len(search.most))
    ]


class ArrayBeamSearch:
    """Beam search over a batch: length limits, finished hypotheses, and every step."""

    def __init__(self, most: list[int], beams: int, best: int, alpha: float):
        self.most, self.beams, self.best, self.alpha = np.array(most, dtype=np.int64), beams, best, alpha
        self.longest = np.array([max(value, 1) ** alpha for value in most])
        self.pool = Pool(len(most), beams)
        self.steps: list[BeamStep] = []

    def run(self, engine: Engine, memory: Tree, sentences: Numbers) -> Iterator[BeamStep]:
        """Search step by step until every sentence is done; yields the next decoder input."""
        steps, top_tokens = engine.begin(memory), TopTokens(self.beams + 1)
        scores, moved = np.zeros((len(sentences), 1)), False
        fed = BeamStep(np.full(len(sentences), BOS), np.zeros(len(sentences), np.float32), np.arange(len(sentences)))
        while len(sentences):
            logits = steps.step(torch.from_numpy(fed.tokens), torch.from_numpy(fed.parents) if moved else None)
            self.steps.append(fed)
            values, tokens = top_tokens(logits)
            ahead = extend(scores, values.numpy(), tokens.numpy(), self.beams)
            grown = ahead.growing(self.beams)
            staying = self.end(sentences, ahead, grown)
            if len(staying) < len(sentences):
                sentences, grown = sentences[staying], grown.of(staying)
                if len(staying):
                    steps.leave(torch.from_numpy(staying))
            if len(staying):
                scores, fed, moved = *build_next_step(grown), True
                yield fed

    def end(self, sentences: Numbers, ahead: Candidates, grown: Candidates) -> Numbers:
        """Record finished hypotheses; returns the indices of the sentences that go on."""
        length = len(self.steps)
        share = length**self.alpha
        finished = ahead.first(self.beams)
        ended = (finished.tokens == EOS) & (finished.scores > IMPOSSIBLE)
        if ended.any():
            self.pool.add(sentences, np.where(ended, finished.scores / share, IMPOSSIBLE), finished, length - 1)
        cut = self.most[sentences] == length
        if cut.any():
            self.pool.close(sentences[cut], grown.of(cut), share, length - 1)
        growing = grown.scores[:, 0]
        over = cut | (growing == IMPOSSIBLE)
        if (over & ~self.pool.any(sentences)).any():
            raise no_token_error(length)
        behind = growing / share <= self.pool.worst(sentences, self.beams)
        hopeless = growing / self.longest[sentences] <= self.pool.worst(sentences, self.best)
        return np.flatnonzero(~(over | behind | hopeless))

    def backtrace_best(self, sentence: int) -> list[Hypothesis]:
        """Backtrace the best hypotheses of a sentence."""
        return [self.backtrace(*ending) for ending in self.pool.of(sentence)[: self.best]]

    def backtrace(
        self, step: int, row: int, token: int, logprob: float, score: float, normalised: float, finished: bool
    ) -> Hypothesis:
        """Backtrace one hypothesis from the row that it ended in."""
        tokens, logprobs = [token], [logprob]
        for fed in reversed(self.steps[1 : step + 1]):
            tokens.append(int(fed.tokens[row]))
            logprobs.append(float(fed.logprobs[row]))
            row = int(fed.parents[row])
        return Hypothesis(tokens[::-1], score, normalised, logprobs[::-1], finished)


def build_next_step(grown: Candidates) -> tuple[Floats, BeamStep]:
    """Next decoder input: as many rows for each sentence as any has active hypotheses."""
    width = int((grown.scores > IMPOSSIBLE).sum(1).max())
    scores, logprobs, tokens, rows = grown.first(width)
    return scores, BeamStep(tokens.reshape(-1), logprobs.reshape(-1), rows.reshape(-1))
