"""Marginal: the exact answer to what hard attention samples."""

from dataclasses import dataclass

from regard.attention.normalise.softmax import Softmax


@dataclass(frozen=True)
class Marginal(Softmax):
    """Softmax whose weights are the chances of looking at one key alone, all of which are then tried.

        a_k = exp(s_k) / Σ_j exp(s_j),    p(y) = Σ_k a_k p(y | context = v_k)

    Deng et al. 2018, "latent alignment", https://arxiv.org/abs/1807.03756; Wu, Shapiro and Cotterell 2018,
    https://arxiv.org/abs/1808.10024
    Hard attention draws one key and estimates the gradient; here nothing is drawn and the gradient is exact. As a stage it
    is softmax. A decoder whose last attention has it works its output out for every key and mixes them by the weights
    (models/layers/marginal.py). The attentions below it, and what is fed back into recurrent cells, read Σ_k a_k v_k as
    ever.
    Cost: that of Softmax here; a decoder does what follows its last look once for each key, so T S times in place of T, and
    holds T S logits of its vocabulary.
    """
