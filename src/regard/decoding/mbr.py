"""Minimum Bayes risk decoding: the candidate of highest expected utility under the model.

    answer = argmax_c  sum_r  P(r) u(c, r)          over candidates c, with r the same candidates as references

Kumar and Byrne 2004, https://aclanthology.org/N04-1022; with samples, Eikema and Aziz 2020, https://arxiv.org/abs/2005.10283
P is the model's probability, renormalised over an n-best list; samples count alike, since they occur as often as they are
likely. The utility u is a sentence-level metric: the higher, the lower the risk.
"""

import math
from collections.abc import Callable, Sequence

from regard.decoding.hypothesis import Hypothesis

Utility = Callable[[Sequence[int], Sequence[int]], float]
"""Utility of an output given a reference, both as tokens."""


def rank_by_utility(hypotheses: Sequence[Hypothesis], utility: Utility, *, sampled: bool) -> list[Hypothesis]:
    """Rank the distinct hypotheses by expected utility, highest first; `normalised` is that utility.

    Hypotheses cut off by the length limit come behind finished ones; of equals, the likelier one is first.
    """
    shares = (
        [1 / len(hypotheses)] * len(hypotheses)
        if sampled
        else normalise_scores([hypothesis.score for hypothesis in hypotheses])
    )
    distinct = {
        tuple(hypothesis.tokens): hypothesis for hypothesis in sorted(hypotheses, key=lambda candidate: candidate.score)
    }
    weights = dict.fromkeys(distinct, 0.0)
    for hypothesis, share in zip(hypotheses, shares, strict=True):
        weights[tuple(hypothesis.tokens)] += share
    valued = [
        hypothesis._replace(normalised=sum(share * utility(hypothesis.tokens, other) for other, share in weights.items()))
        for hypothesis in distinct.values()
    ]
    return sorted(valued, key=lambda candidate: (not candidate.finished, -candidate.normalised, -candidate.score))


def normalise_scores(scores: Sequence[float]) -> list[float]:
    """Normalised probabilities from log-probabilities."""
    most = max(scores)
    shares = [math.exp(score - most) for score in scores]
    return [share / sum(shares) for share in shares]
