"""Bahdanau's attention, the first of neural machine translation."""

from typing import Any

from regard.attention.module import Attention


class Bahdanau(Attention):
    """Additive score, softmax, global scope: a new context for every target token.

        c_i = Σ_j softmax_j(vᵀ tanh(W s_{i-1} + U h_j)) h_j

    Bahdanau, Cho and Bengio 2015, eq. 5 and 6 and appendix A.1.2, https://arxiv.org/abs/1409.0473
    The query is the decoder's state before the step.
    Cost: that of Additive.
    """

    def __init__(self, query: int, key: int | None = None, **options: Any):
        super().__init__(query, key, score="additive", **options)
