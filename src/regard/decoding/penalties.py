"""Length and coverage penalties, by which finished hypotheses are ranked.

    s(Y, X) = log P(Y | X) / |Y|^alpha + beta * cp(X, Y)

Wu et al. 2016, eq. 14, https://arxiv.org/abs/1609.08144
Unlike the paper, the length penalty is |Y|^alpha, not (5 + |Y|)^alpha / (5 + 1)^alpha: with alpha = 1 it is then the mean
log-probability of a token. |Y| counts EOS.
"""

from jaxtyping import Bool, Float
from torch import Tensor

MIN_COVERAGE = 1e-6
"""Lower bound of a key's coverage, so that sparse weights do not cost infinitely much."""


def penalise_length(score: float, length: int, alpha: float) -> float:
    """Score after the length penalty: score / length^alpha, with a length of at least 1."""
    return score / max(length, 1) ** alpha


def penalise_coverage(
    coverage: Float[Tensor, "rows keys"], keep: Bool[Tensor, "rows keys"] | None = None
) -> Float[Tensor, " rows"]:
    """Coverage penalty: every key of the source should get a whole token's attention over time.

        cp(X, Y) = sum_i log(min(sum_j p_ij, 1))          p_ij: share of key i in the attention of token j

    It is 0 for a source that is covered, and negative else.
    """
    log_coverage = coverage.clamp(MIN_COVERAGE, 1.0).log()
    return (log_coverage if keep is None else log_coverage.masked_fill(~keep, 0.0)).sum(-1)
