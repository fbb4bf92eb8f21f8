"""Where a model must have looked, now that it is known what it wrote."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Batch, shifted
from regard.decoding.attention_weights import is_cross_attention

Weights = dict[str, Float[Tensor, "batch heads target source"]]


def posterior(model: nn.Module, batch: Batch) -> Weights:
    """The weights of every attention over the source; of one that looks at a single key, its posterior.

        p(s | y_t) = a_ts p(y_t | s) / Σ_k a_tk p(y_t | k) = a_ts (1 + ∂ log p(y_t) / ∂a_ts)

    An attention whose outcome is the exact marginal (models/layers/marginal.py) says before it writes where it may look, a,
    and for
    each key what would follow from it; the token that is then written tells the keys apart. The gradient of a marginal that
    is divided by Σ_k a_tk = 1 is p(y_t | s) / p(y_t) - 1, which is the second equation. Deng et al. 2018,
    https://arxiv.org/abs/1807.03756
    """
    assert batch.target is not None, "an alignment is one of a source and a target"
    outcome = getattr(getattr(model, "decoder", None), "outcome", None)
    exact = getattr(outcome, "exact", False) and getattr(outcome, "copying", None) is None
    with torch.enable_grad() if exact else torch.no_grad():
        step = model(batch.source, shifted(batch.target.data), weights=True)
        weights = {
            name: each.weights
            for name, each in step.attended.items()
            if is_cross_attention(name) and each.weights is not None
        }
        if exact and weights:
            name, looked = list(weights.items())[-1]  # the last one decides what is written
            log = step.output.float().log_softmax(-1).gather(-1, batch.target.data[..., None])[..., 0]
            [slope] = torch.autograd.grad(log.masked_fill(~batch.target.keep, 0.0).sum(), looked)
            weights[name] = looked * (1 + slope)
    return {name: each.detach() for name, each in weights.items()}
