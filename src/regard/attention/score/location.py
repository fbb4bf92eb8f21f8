"""Location score, Luong's, which depends on the query alone."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.per_head import PerHead
from regard.attention.score import require_size


class Location(nn.Module):
    """Score of each position computed from the query alone, independent of the key's content.

        score(q, k at position i) = (W q)_i

    Luong, Pham and Manning 2015, eq. 8, https://arxiv.org/abs/1508.04025
    The query may be any vector known at the step, such as [embedding of the last token; decoder state]. There is one row of
    W for each position, so no source may be longer than `limit`.
    Cost: time O(T S d), memory T S.
    """

    def __init__(self, query: int, limit: int = 128, heads: int = 1):
        super().__init__()
        self.query, self.limit = query, limit
        self.W = PerHead(query, limit, heads)

    def prepare(self, key: Float[Tensor, "batch heads keys key"]) -> Float[Tensor, "batch heads keys 1"]:
        """The key itself, of which only the length is used."""
        if key.shape[2] > self.limit:
            raise ValueError(
                f"Location was made for at most {self.limit} keys, got {key.shape[2]}; build it with limit={key.shape[2]}, "
                "or use a score that looks at the keys, such as Additive"
            )
        return key[..., :1]

    def forward(
        self, query: Float[Tensor, "batch heads queries query"], prepared: Float[Tensor, "batch key_heads keys 1"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        require_size("Location", "query", self.query, query.shape[-1])
        scores: Tensor = self.W(query)
        return scores[..., : prepared.shape[2]]
