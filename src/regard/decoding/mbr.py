"""Minimum Bayes risk: the answer that is nearest to all answers that the model holds possible.

    answer = argmax_c  sum_r  P(r) u(c, r)          over candidates c, with r the same candidates as references

Kumar and Byrne 2004, https://aclanthology.org/N04-1022; with samples, Eikema and Aziz 2020, https://arxiv.org/abs/2005.10283
P is the model's probability, scaled to sum to one over a list of the best; samples come as often as they are likely, so each
counts alike. The utility u is the metric of a sentence: the higher, the less is lost by the wrong answer.
"""

import math
from collections.abc import Callable, Sequence

from regard.decoding.hypothesis import Found

Utility = Callable[[Sequence[int], Sequence[int]], float]
"""What an output is worth beside a reference, both as tokens."""


def rank(found: Sequence[Found], utility: Utility, *, drawn: bool) -> list[Found]:
    """The different targets among these, the one of highest expected utility first; `normalised` is that utility.

    What the length limit cut off comes behind what is finished; of equals, the likelier one is first.
    """
    shares = [1 / len(found)] * len(found) if drawn else likely([each.score for each in found])
    distinct = {tuple(each.tokens): each for each in sorted(found, key=lambda each: each.score)}
    weights = dict.fromkeys(distinct, 0.0)
    for each, share in zip(found, shares, strict=True):
        weights[tuple(each.tokens)] += share
    valued = [
        each._replace(normalised=sum(share * utility(each.tokens, other) for other, share in weights.items()))
        for each in distinct.values()
    ]
    return sorted(valued, key=lambda each: (not each.finished, -each.normalised, -each.score))


def likely(scores: Sequence[float]) -> list[float]:
    """Probabilities from log-probabilities, scaled to sum to one."""
    most = max(scores)
    shares = [math.exp(score - most) for score in scores]
    return [share / sum(shares) for share in shares]
