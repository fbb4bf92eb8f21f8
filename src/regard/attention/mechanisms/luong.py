"""Luong's attention: four scores, with a global scope or a local window."""

from typing import Any

from regard.attention.local import Centre, Windows
from regard.attention.mechanisms.local_m import MonotoneCentre
from regard.attention.mechanisms.local_p import PredictedCentre

SCORES = {"dot": "dot", "general": "bilinear", "concat": "concat", "location": "location"}
"""The paper's names, and ours."""

WINDOWS = ("global", "local_m", "local_p")


class Luong(Windows):
    """One of four scores, softmax, global or local scope; the query is the decoder's state after the step.

        c_t = Σ_s softmax_s(score(h_t, h_s)) h_s,    score: dot, general, concat or location

    Luong, Pham and Manning 2015, section 3.1, eq. 7 and 8, https://arxiv.org/abs/1508.04025
    `window` is "global", or "local_m" or "local_p" of section 3.2, which are also mechanisms of these names.
    Cost: that of the score; in a window of 2 D + 1 keys, T (2 D + 1) scores instead of T S.
    """

    def __init__(self, query: int, key: int | None = None, score: str = "general", window: str = "global", **options: Any):
        if score not in SCORES and score not in SCORES.values():
            raise ValueError(f"Luong's scores are {', '.join(SCORES)}, got {score!r}")
        if window not in WINDOWS:
            raise ValueError(f"Luong's windows are {', '.join(WINDOWS)}, got {window!r}")
        super().__init__(query, key, score=SCORES.get(score, score), centre=_centre(window, query), **options)


def _centre(window: str, query: int) -> Centre | None:
    if window == "local_m":
        return MonotoneCentre()
    return PredictedCentre(query) if window == "local_p" else None
