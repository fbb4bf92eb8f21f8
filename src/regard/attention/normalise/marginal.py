"""Marginal: latent alignment with exact marginalisation, where hard attention samples."""

from dataclasses import dataclass

from regard.attention.normalise.softmax import Softmax


@dataclass(frozen=True)
class Marginal(Softmax):
    """Softmax whose weights are the probabilities of a latent alignment, marginalised by the decoder.

        a_k = exp(s_k) / Σ_j exp(s_j),    p(y) = Σ_k a_k p(y | context = v_k)

    Deng et al. 2018, "latent alignment", https://arxiv.org/abs/1807.03756; Wu, Shapiro and Cotterell 2018,
    https://arxiv.org/abs/1808.10024
    Hard attention samples one key and estimates the gradient; here nothing is sampled and the gradient is exact. As a stage
    it is softmax. A decoder whose last attention has it computes its output for every key and mixes the probabilities by the
    weights (models/layers/marginal.py). Lower layers, and the input feeding of recurrent cells, read Σ_k a_k v_k.
    Cost: that of Softmax here; a decoder computes the layers after its last attention once for each key, so T S times in
    place of T, and holds T S logits of its vocabulary.
    """
