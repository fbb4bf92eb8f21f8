"""Detection of causal masks."""

import numpy as np

from regard.data.axis import Array


def causal(allowed: Array) -> bool:
    """Return True for a causal mask: query q sees keys 0 to q + (keys - queries), for every head."""
    queries, keys = allowed.shape[-2:]
    triangle = np.tri(queries, keys, keys - queries, dtype=bool)
    return keys >= queries and bool((allowed == triangle).all())
