"""Learned queries, each of which attends to a source."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.types import Attended, Encoded
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.readout import call_attention, require_attention


class LearnedQueries(nn.Module):
    """Learned query vectors, `count` of them, that attend to a source by one attention.

        c_n = attention(q_n, source)

    An attention whose context is of another size than the queries gets a projection after it.
    """

    def __init__(
        self, count: int, source: int, size: int, attention: AttentionFactory = partial(build_attention, "transformer")
    ):
        super().__init__()
        if count < 1:
            raise ValueError(f"learned queries need to be 1 or more, got {count}")
        self.table = nn.Parameter(torch.empty(count, size))
        with torch.no_grad():
            self.table.normal_().mul_(size**-0.5)
        self.attention = require_attention(attention(size, source), "a learned query")
        self.fit = nn.Identity() if self.attention.size == size else nn.Linear(self.attention.size, size)
        self.size = size

    def forward(self, encoded: Encoded, weights: bool = False) -> Attended:
        """Context of each query, (batch, count, size)."""
        query: Float[Tensor, "batch count size"] = self.table.expand(encoded.data.shape[0], -1, -1)
        attended = call_attention(self.attention, query, self.attention.remember(encoded), weights)
        return attended._replace(context=self.fit(attended.context))
