"""Document scope: the mask of packed rows."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.scope import Scope


@dataclass(frozen=True, eq=False)
class Document(Scope):
    """Document mask: keys of the query's own document, where several are packed into one row.

        allowed(q, k)  ⇔  queries[b, q] = keys[b, k]

    Krell et al. 2021, https://arxiv.org/abs/2107.02027
    `keys` is the number of the document at each position. In self-attention, where queries and keys share positions, that is
    all; in cross-attention, as of packed targets to packed sources, `queries` numbers the documents of the queries.
    (tokens == start).cumsum(-1) makes such numbers. A query beyond the last of them belongs to no document and sees nothing;
    numbers beyond the last key are for a KV cache that grows.
    Cost: Σ length² scores are wanted; without a kernel that skips, T S are computed.
    """

    keys: Int[Tensor, "batch keys"]
    queries: Int[Tensor, "batch queries"] | None = None

    def __post_init__(self) -> None:
        for name, numbers in (("keys", self.keys), ("queries", self.queries)):
            if numbers is not None and (numbers.ndim != 2 or numbers.dtype not in (torch.int64, torch.int32)):
                raise ValueError(
                    f"Document needs {name} of (batch, positions), the whole number of a document at each, "
                    f"got {numbers.dtype} of {tuple(numbers.shape)}"
                )
        if self.queries is not None and len(self.queries) != len(self.keys):
            raise ValueError(
                f"Document needs as many rows of queries as of keys, got {len(self.queries)} and {len(self.keys)}"
            )

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        numbers = self.keys if self.queries is None else self.queries
        last = numbers.shape[1] - 1
        return (numbers[b, q.clamp_max(last)] == self.keys[b, k]) & (q <= last)

    def check(self, batch: int, heads: int, queries: int, keys: int) -> None:
        if self.keys.shape[0] != batch or self.keys.shape[1] < keys:
            raise ValueError(
                f"Document was made for {tuple(self.keys.shape)} (batch, keys), and met a batch of {batch} with {keys} keys"
            )

    @classmethod
    def sample(cls, batch: int, keys: int) -> "Document":
        """Documents of three positions; each row begins one position later in its first."""
        return cls((torch.arange(keys) + torch.arange(batch)[:, None]) // 3)
