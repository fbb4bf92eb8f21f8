"""Copies in an output: the tokens that a pointer-generator copied rather than generated, and from where."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.batch import pad, shifted
from regard.decoding.logprobs import compute_logprobs
from regard.decoding.max_length import find_tensor
from regard.models.types import Decoder
from regard.tree import Tree

LEAST_SHARE = 0.5
"""Share of a token's probability from which on it counts as copied: copying made it likelier than generating."""


class Copy(NamedTuple):
    """Copied token: its place in the output, the place of the source that it comes from, and the share of copying."""

    target: int
    source: int
    share: float


@torch.no_grad()
def find_copies(decoder: Decoder, memory: Tree, targets: Sequence[Sequence[int]]) -> list[list[Copy]]:
    """Copied tokens of each output, by teacher forcing; none for a decoder that copies nothing.

        share_t = (1 - g_t) Σ_{s: x_s = y_t} a_ts / p(y_t)

    The source place is that of the largest weight among those that hold the token.
    """
    if not any(targets):
        return [[] for _ in targets]
    rows = pad([list(target) for target in targets]).to(find_tensor(memory).device)
    step = decoder(shifted(rows.data), memory)
    parts = step.copying
    if parts is None:
        return [[] for _ in targets]
    logs = compute_logprobs(step.output).gather(-1, rows.data[..., None])[..., 0]
    _, other = parts.log_shares()
    weights: Tensor = parts.weights.masked_fill(parts.tokens[:, None] != rows.data[..., None], 0.0)
    shares = (other[..., 0] - logs).exp() * weights.sum(-1)
    places = weights.argmax(-1)
    return [
        [
            Copy(place, int(places[row, place]), min(1.0, float(shares[row, place])))
            for place in range(len(target))
            if shares[row, place] > LEAST_SHARE
        ]
        for row, target in enumerate(targets)
    ]
