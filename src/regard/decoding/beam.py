"""Beam search (the eager reference implementation)."""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.special_tokens import BOS
from regard.decoding import diverse
from regard.decoding.attention_weights import collect_weights_by_row, find_key_mask, select_attention
from regard.decoding.backpointers import Ending, History, SearchStep, make_empty_hypothesis
from regard.decoding.beam_state import ActiveBeam, Candidates, Extensions
from regard.decoding.constraints import beam_allocation
from regard.decoding.constraints.state import ConstraintState, Guard, unsatisfiable_error
from regard.decoding.fusion import Fusion
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import IMPOSSIBLE, compute_logprobs, mask_special_tokens, no_token_error
from regard.decoding.max_length import find_device, resolve_limits
from regard.decoding.penalties import penalise_coverage, penalise_length
from regard.decoding.search_tree import SearchTree as Branches
from regard.models.types import Decoder
from regard.tree import Tree, select


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
    groups: int = 1,
    diversity: float = 0.5,
    guard: Guard | None = None,
    fusion: Fusion | None = None,
) -> list[list[Hypothesis]]:
    """Beam search: the `best` hypotheses for each sentence, best first; fewer where there are no more.

    At each step every sentence's hypotheses are extended by every token. Of the `beams` best extensions, those with EOS have
    finished; the `beams` best without EOS go on. A sentence is done when `beams` hypotheses have finished that are at least
    as good, after the length penalty, as any active one is now: so a beam of one is greedy search, and poor early endings do
    not stop a good hypothesis. It is also done at its `length`, EOS included, where active hypotheses are cut off. While
    active, hypotheses are compared by log P; in the end they are ranked by s(Y, X) of `penalties.py`, finished ones before
    those that were cut off. Ties go to the one that ended first, then to the better prefix.

    `attention` names the one whose weights the coverage penalty adds up (the mean of its heads); None is the first
    cross-attention. `unknown=False` forbids UNK. A `tree` records every hypothesis, for one sentence alone. Several `groups`
    share the beams and are kept apart by `diversity` (diverse.py). A `guard` holds the constraints on each target; required
    phrases are found by dynamic beam allocation (constraints/beam_allocation.py). A `fusion` adds scores of other models;
    log P is then the combined score, and where it may be above 0 there is no early stop.

    The early stop is exact: it changes no result, only the time. Let m be the length limit, alpha >= 0 the length penalty
    and beta >= 0 the coverage penalty. A hypothesis that grows from one of score g <= 0 to a finished one of length l <= m
    has a score g' <= g, since each token adds log P <= 0, and cp <= 0. So

        s = g' / l^alpha + beta cp  <=  g' / l^alpha  <=  g / l^alpha  <=  g / m^alpha

    where the last step holds because g <= 0 and l^alpha <= m^alpha. Rounding keeps each of these orders. When the right-hand
    side, for the best growing hypothesis, is not above the score of the `best`-th finished one, then nothing that still
    grows can come before that one, and the sentence is done. Cut-off hypotheses rank behind all finished ones anyway.
    """
    early = early and not (fusion is not None and fusion.rewards)
    rules = BeamOptions(beams, best, length_penalty, coverage_penalty, attention, unknown, weights, early, groups, diversity)
    search = BeamSearch(decoder, memory, resolve_limits(length, memory), rules, tree, guard, fusion)
    active = search.begin(memory)
    while active is not None:
        active = search.advance(active)
    answers = [search.answers(sentence) for sentence in range(len(search.most))]
    if tree is not None and answers[0]:
        tree.choose(answers[0][0])
    return [
        [search.history.backtrace(ending, weights) for ending in answer] or [make_empty_hypothesis(weights)]
        for answer in answers
    ]


@dataclass(frozen=True)
class BeamOptions:
    """Options of a beam search, checked."""

    beams: int
    best: int
    length_penalty: float
    coverage_penalty: float
    attention: str | None
    unknown: bool
    weights: bool
    early: bool
    groups: int = 1
    diversity: float = 0.5

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
        if self.groups < 1 or self.beams % self.groups:
            raise ValueError(
                f"groups needs to be a number that beams ({self.beams}) can be shared out to, got {self.groups}; "
                f"{self.beams} groups of one differ most, 1 is plain beam search"
            )
        if not 0 <= self.diversity < math.inf:
            raise ValueError(f"diversity needs to be 0 or more and finite, got {self.diversity}; 0 lets groups be alike")


class BeamSearch:
    """Beam search over a batch: options, back-pointers, and the finished hypotheses of each sentence."""

    def __init__(
        self,
        decoder: Decoder,
        memory: Tree,
        most: list[int],
        rules: BeamOptions,
        tree: Branches | None = None,
        guard: Guard | None = None,
        fusion: Fusion | None = None,
    ):
        if tree is not None and len(most) != 1:
            raise ValueError(f"a tree shows the search for one sentence, got {len(most)}; search for one at a time")
        if guard is not None:
            guard.fit(most)
            if guard.includes and rules.groups > 1:
                raise ValueError(
                    f"groups needs to be 1 where a target must hold phrases, got {rules.groups}: both share out the beam"
                )
        self.decoder, self.most, self.rules, self.tree, self.guard = decoder, most, rules, tree, guard
        self.fusion = fusion
        self.history = History(memory)
        self.pools: list[list[list[Ending]]] = [[[] for _ in range(rules.groups)] for _ in most]
        """Finished hypotheses of each group of each sentence, best first."""

    def begin(self, memory: Tree) -> ActiveBeam | None:
        """Initial beam: every sentence with a length limit above 0, with one row each."""
        sentences = [sentence for sentence, most in enumerate(self.most) if most > 0]
        if not sentences:
            return None
        if len(sentences) < len(self.most):
            memory = select(memory, torch.tensor(sentences, device=find_device(memory)))
        rows = len(sentences)
        fed = SearchStep([BOS] * rows, [0.0] * rows, list(range(rows)))
        constraints = None if self.guard is None else self.guard.start(sentences)
        fused = () if self.fusion is None else self.fusion.start(sentences)
        state = self.decoder.start(memory), None, constraints, fused
        return ActiveBeam(sentences, torch.zeros(rows, 1, dtype=torch.float64), fed, memory, state)

    def advance(self, active: ActiveBeam) -> ActiveBeam | None:
        """Advance all sentences by one step; None when every one is done."""
        tokens = torch.tensor(active.input.tokens, device=find_device(active.memory))
        state, coverage, constraints, fused = active.state
        needs_weights = self.rules.weights or self.rules.coverage_penalty > 0
        step = self.decoder.step(tokens, active.memory, state, weights=needs_weights)
        weights = collect_weights_by_row(step.attended) if needs_weights else {}
        self.history.add(active.input, weights if self.rules.weights else None)
        coverage, covered = self.cover(active, weights, coverage)
        logs = mask_special_tokens(compute_logprobs(step.output), self.rules.unknown)
        if self.fusion is not None:
            fused = self.fusion.after(fused, tokens)
            logs = self.fusion.combine(fused, logs)
        if self.guard is not None:
            constraints = self.guard.after(constraints, tokens)
            logs = self.guard.forbid(constraints, logs)
        extensions = self.extend(active, logs, constraints)
        self.end(active, extensions.ahead, covered, extensions.ended, extensions.groups, finished=True)
        cut = torch.tensor([[self.most[sentence] == len(self.history)] for sentence in active.sentences])
        if cut.any():
            whole = cut & (extensions.grown.scores > IMPOSSIBLE) & self.met(extensions.grown, constraints)
            self.end(active, extensions.grown, covered, whole, extensions.grown_groups, finished=False)
        extensions, staying = self.drop_done(active, extensions)
        if self.tree is not None:
            self.tree.add(extensions.ahead, extensions.grown, extensions.ended, weights)
        if not staying:
            return None
        return active.move(extensions.grown, staying, (step.state, coverage, constraints, fused), extensions.grown_groups)

    def extend(
        self, active: ActiveBeam, logs: Float[Tensor, "rows vocabulary"], constraints: ConstraintState | None
    ) -> Extensions:
        """Candidates of a step, which of them have finished, and which go on."""
        if self.rules.groups > 1:
            return diverse.extend_groups(active, logs, self.rules.beams, self.rules.groups, self.rules.diversity)
        if self.guard is not None and constraints is not None and self.guard.includes:
            return beam_allocation.extend_banks(active, logs, self.guard, constraints, self.rules.beams)
        return active.extend(logs, self.rules.beams)

    def met(self, grown: Candidates, constraints: ConstraintState | None) -> Bool[Tensor, "#sentences #grown"]:
        """Mask of the candidates that satisfy the constraints of their sentence."""
        if self.guard is None:
            return torch.ones(1, 1, dtype=torch.bool)
        where = self.guard.firsts.device
        rows, tokens = grown.rows.flatten().to(where), grown.tokens.flatten().to(where)
        return self.guard.met(self.guard.after(select(constraints, rows), tokens)).cpu().view(grown.tokens.shape)

    def drop_done(self, active: ActiveBeam, extensions: Extensions) -> tuple[Extensions, list[int]]:
        """Drop what is done: returns the remaining extensions, and the indices of the sentences that go on."""
        if self.rules.groups > 1:
            return diverse.drop_finished_groups(
                extensions, lambda place, group, score: self.done(active.sentences[place], score, group)
            )
        heads = zip(active.sentences, extensions.grown.scores[:, 0].tolist(), strict=True)
        return extensions, [row for row, (sentence, score) in enumerate(heads) if not self.done(sentence, score)]

    def answers(self, sentence: int) -> list[Ending]:
        """Best finished hypotheses of a sentence."""
        pools = self.pools[sentence]
        if len(pools) == 1:
            return pools[0][: self.rules.best]
        return diverse.merge_groups(
            pools, self.rules.best, lambda ending: tuple(self.history.backtrace(ending, weights=False).tokens)
        )

    def cover(
        self, active: ActiveBeam, weights: dict[str, Float[Tensor, "_ _ _"]], coverage: Tensor | None
    ) -> tuple[Float[Tensor, "rows keys"] | None, list[float]]:
        """Accumulated attention of each key, and the coverage penalty of each row."""
        if not self.rules.coverage_penalty:
            return None, [0.0] * len(active.input.tokens)
        name = select_attention(weights, self.rules.attention)
        received = weights[name].float().mean(1)
        coverage = received if coverage is None else coverage + received
        keep = find_key_mask(active.memory, name, coverage.shape[1])
        keep = None if keep is None else keep.repeat_interleave(active.width, dim=0)
        return coverage, [self.rules.coverage_penalty * value for value in penalise_coverage(coverage, keep).tolist()]

    def end(
        self,
        active: ActiveBeam,
        ahead: Candidates,
        covered: list[float],
        which: Tensor,
        groups: Tensor | None,
        finished: bool,
    ) -> None:
        """Insert finished candidates into the pools of their sentences and groups, best first."""
        length, width = len(self.history), which.shape[1]
        places = which.nonzero()[:, 0].tolist()
        of = [0] * len(places) if groups is None else groups[:, :width][which].tolist()
        scores, logprobs, tokens, rows = (tensor[:, :width][which].tolist() for tensor in ahead)
        for place, group, score, logprob, token, row in zip(places, of, scores, logprobs, tokens, rows, strict=True):
            sentence = active.sentences[place]
            normalised = penalise_length(score, length, self.rules.length_penalty) + covered[row]
            ending = Ending(sentence, length - 1, row, token, logprob, score, normalised, finished)
            insort(
                self.pools[sentence][group], ending, key=lambda candidate: (not candidate.finished, -candidate.normalised)
            )

    def done(self, sentence: int, growing: float, group: int = 0) -> bool:
        """Return True if a group is done, `growing` being the score of its best active hypothesis."""
        pool, most = self.pools[sentence][group], self.most[sentence]
        beams = self.rules.beams // self.rules.groups
        best = self.rules.best if self.rules.groups == 1 else beams
        alpha, length = self.rules.length_penalty, len(self.history)
        over = growing == IMPOSSIBLE or length == most
        if over and not any(self.pools[sentence]):
            raise no_token_error(length) if self.guard is None else unsatisfiable_error(length)
        if over:
            return True
        if len(pool) >= beams:
            now = penalise_length(growing, length, alpha)
            if sum(penalise_length(hypothesis.score, hypothesis.step + 1, alpha) >= now for hypothesis in pool) >= beams:
                return True
        if not self.rules.early or len(pool) < best:
            return False
        return penalise_length(growing, most, alpha) <= pool[best - 1].normalised
