"""Luong's global attention, with his four scores."""

from typing import Any

from regard.attention.module import Attention

NAMES = {"dot": "dot", "general": "bilinear", "concat": "concat", "location": "location"}
"""The paper's names, and ours."""


class Luong(Attention):
    """One of four scores, softmax, everywhere; the query is the decoder's state after the step.

        c_t = Σ_s softmax_s(score(h_t, h_s)) h_s,    score: dot, general, concat or location

    Luong, Pham and Manning 2015, section 3.1, eq. 7 and 8, https://arxiv.org/abs/1508.04025
    Cost: that of the score.
    """

    def __init__(self, query: int, key: int | None = None, score: str = "general", **options: Any):
        if score not in NAMES:
            raise ValueError(f"Luong's scores are {', '.join(NAMES)}, got {score!r}")
        super().__init__(query, key, score=NAMES[score], **options)
