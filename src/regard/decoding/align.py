"""Word alignment from attention weights: links between source and target."""

from jaxtyping import Float
from torch import Tensor


def align(weights: Float[Tensor, "heads steps keys"]) -> list[tuple[int, int]]:
    """Align each target position to the source position of largest attention: (source, target) pairs in target order.

        link(j) = argmax_i  mean_h p_hij

    The order within a pair is that of the Pharaoh format. Of equal weights the first wins; a position with no weight has no
    link. One head alone is align(weights[head : head + 1]).
    """
    _, _, keys = weights.shape
    if keys == 0:
        return []
    most, where = weights.float().mean(0).max(-1)
    return [
        (source, target) for target, (source, most) in enumerate(zip(where.tolist(), most.tolist(), strict=True)) if most > 0
    ]
