"""Linear attention: keys and values are summed once, and every query reads the sums."""

from typing import Any

from regard.attention.multihead import MultiHead


class Linear(MultiHead):
    """Multi-head linear attention by a feature map, whose sums over the keys are independent of the query.

        c_t = Σ_s φ(q_t)ᵀφ(k_s) v_s / Σ_s φ(q_t)ᵀφ(k_s) = φ(q_t)ᵀ (Σ_s φ(k_s) v_sᵀ) / φ(q_t)ᵀ (Σ_s φ(k_s))

    Katharopoulos et al. 2020, eq. 4 to 7, and 8 to 12 for a causal scope, https://arxiv.org/abs/2006.16236
    The left side is the three stages, which run where weights are requested, under dropout of the weights, and for other
    scopes than everywhere, padding and causal; the right side is the linear kernel. A decoder's KV cache still holds every
    key, where the paper's recurrent view (section 3.4) would hold one matrix.
    Cost: time O((T + S) d²), memory O((T + S) d); that of the three stages where those run.
    """

    def __init__(self, query: int, key: int | None = None, heads: int = 8, normalise: Any = "sum_to_one", **options: Any):
        super().__init__(query, key, heads=heads, score="feature_map", normalise=normalise, **options)
