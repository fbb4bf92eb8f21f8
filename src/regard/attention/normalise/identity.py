"""Identity normaliser: the scores themselves are the weights."""

from dataclasses import dataclass
from typing import ClassVar

from regard.attention.normalise import Allowed, Scores, silence


@dataclass(frozen=True)
class Identity:
    """No normalisation: with Dot, the context is (Q Kᵀ) V.

        a_k = s_k

    Schlag, Irie and Schmidhuber 2021, section 3.1, eq. 10 and 11, https://arxiv.org/abs/2102.11174
    Weights may be negative, and grow with the scores: keep those small.
    Cost: time O(T S), memory T S.
    """

    sums_to_one: ClassVar[bool] = False

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        return silence(scores, allowed)
