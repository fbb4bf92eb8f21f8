"""Beam search: follow the few best hypotheses of each sentence at once."""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.vocabulary import BOS
from regard.decoding.found import Found
from regard.decoding.front import Candidates, Front
from regard.decoding.history import Ending, History, Moment, nothing
from regard.decoding.likelihood import IMPOSSIBLE, likelihood, possible, stuck
from regard.decoding.limits import device, limits
from regard.decoding.looked import by_row, cross, kept
from regard.decoding.penalties import cover, normalise
from regard.decoding.tree import Tree as Branches
from regard.models.types import Decoder, Tree, select


@torch.no_grad()
def beam(
    decoder: Decoder,
    memory: Tree,
    *,
    beams: int,
    length: int | Sequence[int],
    best: int = 1,
    length_penalty: float = 1.0,
    coverage_penalty: float = 0.0,
    attention: str | None = None,
    unknown: bool = True,
    weights: bool = False,
    early: bool = True,
    tree: Branches | None = None,
) -> list[list[Found]]:
    """The `best` targets found for each sentence, best first; fewer where there are no more.

    At each step every sentence's hypotheses are extended by every token. Of the `beams` best extensions, those with EOS have
    finished; the `beams` best without EOS go on. A sentence is done when `beams` hypotheses have finished that are at least
    as good, after the length penalty, as any that still grows is now: so a beam of one is greedy search, and poor early
    endings do not stop a good hypothesis. It is also done at its `length`, EOS included, where those that still grow are cut
    off. While they grow, hypotheses are compared by log P; in the end they are ranked by s(Y, X) of `penalties.py`, those
    that finished before those that were cut off. Ties go to the one that ended first, then to the better beginning.

    `attention` names the one whose weights the coverage penalty adds up (the mean of its heads); None is the first over the
    source. `unknown=False` forbids UNK. A `tree` is filled with every hypothesis that was followed, for one sentence alone.

    The early stop is exact: it changes no result, only the time. Let m be the length limit, alpha >= 0 the length penalty
    and beta >= 0 the coverage penalty. A hypothesis that grows from one of score g <= 0 to a finished one of length l <= m
    has a score g' <= g, since each token adds log P <= 0, and cp <= 0. So

        s = g' / l^alpha + beta cp  <=  g' / l^alpha  <=  g / l^alpha  <=  g / m^alpha

    where the last step holds because g <= 0 and l^alpha <= m^alpha. Rounding keeps each of these orders. When the right-hand
    side, for the best growing hypothesis, is not above the score of the `best`-th finished one, then nothing that still
    grows can come before that one, and the sentence is done. Cut-off hypotheses rank behind all finished ones anyway.
    """
    rules = Rules(beams, best, length_penalty, coverage_penalty, attention, unknown, weights, early)
    search = Search(decoder, memory, limits(length, memory), rules, tree)
    front = search.begin(memory)
    while front is not None:
        front = search.advance(front)
    if tree is not None and search.pools[0]:
        tree.choose(search.pools[0][0])
    return [[search.history.found(ending, weights) for ending in pool[:best]] or [nothing(weights)] for pool in search.pools]


@dataclass(frozen=True)
class Rules:
    """How to search, checked."""

    beams: int
    best: int
    length_penalty: float
    coverage_penalty: float
    attention: str | None
    unknown: bool
    weights: bool
    early: bool

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise ValueError(f"beams needs to be 1 or more, got {self.beams}; 1 is greedy search")
        if not 1 <= self.best <= self.beams:
            raise ValueError(f"best needs to be from 1 to beams ({self.beams}), got {self.best}; raise beams to find more")
        if not 0 <= self.length_penalty <= 10:
            raise ValueError(f"length_penalty needs to be from 0 to 10, got {self.length_penalty}; 0 turns it off")
        if not 0 <= self.coverage_penalty < math.inf:
            raise ValueError(
                f"coverage_penalty needs to be 0 or more and finite, got {self.coverage_penalty}; 0 turns it off"
            )


class Search:
    """One beam search over a batch: the rules, the history, and what has ended so far, sentence by sentence."""

    def __init__(self, decoder: Decoder, memory: Tree, most: list[int], rules: Rules, tree: Branches | None = None):
        if tree is not None and len(most) != 1:
            raise ValueError(f"a tree shows the search for one sentence, got {len(most)}; search for one at a time")
        self.decoder, self.most, self.rules, self.tree = decoder, most, rules, tree
        self.history = History(memory)
        self.pools: list[list[Ending]] = [[] for _ in most]

    def begin(self, memory: Tree) -> Front | None:
        """Every sentence that may become longer than nothing, with one row each."""
        sentences = [sentence for sentence, most in enumerate(self.most) if most > 0]
        if not sentences:
            return None
        if len(sentences) < len(self.most):
            memory = select(memory, torch.tensor(sentences, device=device(memory)))
        rows = len(sentences)
        moment = Moment([BOS] * rows, [0.0] * rows, list(range(rows)))
        return Front(
            sentences, torch.zeros(rows, 1, dtype=torch.float64), moment, memory, (self.decoder.start(memory), None)
        )

    def advance(self, front: Front) -> Front | None:
        """One step of all sentences; None when every one is done."""
        tokens = torch.tensor(front.moment.tokens, device=device(front.memory))
        state, coverage = front.state
        looks = self.rules.weights or self.rules.coverage_penalty > 0
        step = self.decoder.step(tokens, front.memory, state, weights=looks)
        seen = by_row(step.attended) if looks else {}
        self.history.add(front.moment, seen if self.rules.weights else None)
        coverage, covered = self.cover(front, seen, coverage)
        ahead = front.extend(possible(likelihood(step.output), self.rules.unknown), self.rules.beams)
        self.end(front, ahead, covered, ahead.ending[:, : self.rules.beams], finished=True)
        grown = ahead.growing(self.rules.beams)
        if self.tree is not None:
            self.tree.add(ahead, grown, ahead.ending[:, : self.rules.beams], seen)
        cut = torch.tensor([[self.most[each] == len(self.history)] for each in front.sentences])
        self.end(front, grown, covered, cut & (grown.scores > IMPOSSIBLE), finished=False)
        heads = zip(front.sentences, grown.scores[:, 0].tolist(), strict=True)
        staying = [row for row, (sentence, score) in enumerate(heads) if not self.done(sentence, score)]
        return front.move(grown, staying, (step.state, coverage)) if staying else None

    def cover(
        self, front: Front, seen: dict[str, Float[Tensor, "_ _ _"]], coverage: Tensor | None
    ) -> tuple[Float[Tensor, "rows keys"] | None, list[float]]:
        """How much each key has been looked at, and what that costs each row."""
        if not self.rules.coverage_penalty:
            return None, [0.0] * len(front.moment.tokens)
        name = cross(seen, self.rules.attention)
        looked = seen[name].float().mean(1)
        coverage = looked if coverage is None else coverage + looked
        keep = kept(front.memory, name, coverage.shape[1])
        keep = None if keep is None else keep.repeat_interleave(front.width, dim=0)
        return coverage, [self.rules.coverage_penalty * each for each in cover(coverage, keep).tolist()]

    def end(self, front: Front, ahead: Candidates, covered: list[float], which: Tensor, finished: bool) -> None:
        """Put these candidates into their sentences' pools, best first."""
        length, width = len(self.history), which.shape[1]
        places = which.nonzero()[:, 0].tolist()
        scores, logprobs, tokens, rows = (each[:, :width][which].tolist() for each in ahead)
        for place, score, logprob, token, row in zip(places, scores, logprobs, tokens, rows, strict=True):
            sentence = front.sentences[place]
            normalised = normalise(score, length, self.rules.length_penalty) + covered[row]
            ending = Ending(sentence, length - 1, row, token, logprob, score, normalised, finished)
            insort(self.pools[sentence], ending, key=lambda each: (not each.finished, -each.normalised))

    def done(self, sentence: int, growing: float) -> bool:
        """Whether the sentence has its answer, `growing` being the score of the best hypothesis that still grows."""
        pool, most = self.pools[sentence], self.most[sentence]
        alpha, length = self.rules.length_penalty, len(self.history)
        if growing == IMPOSSIBLE and not pool:
            raise stuck(length)
        if growing == IMPOSSIBLE or length == most:
            return True
        if len(pool) >= self.rules.beams:
            now = normalise(growing, length, alpha)
            if sum(normalise(each.score, each.step + 1, alpha) >= now for each in pool) >= self.rules.beams:
                return True
        if not self.rules.early or len(pool) < self.rules.best:
            return False
        return normalise(growing, most, alpha) <= pool[self.rules.best - 1].normalised
