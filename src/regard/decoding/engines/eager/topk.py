"""Top-k tokens of each row, in few passes over the logits."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS, PAD, UNK
from regard.decoding.logprobs import IMPOSSIBLE, no_distribution_error
from regard.decoding.topk import select_highest

CHUNK = 32
"""Rows at a time: their results stay in the cache until they are used."""
BLOCKS = 96
"""Number of blocks of columns; the top-k tokens lie in the k blocks with the best maxima."""


class TopTokens:
    """Top-k log-probabilities `highest(possible(likelihood(logits)), count)`, with a reused buffer."""

    def __init__(self, count: int, unknown: bool = True):
        self.count = count
        self.forbidden = [PAD, BOS] if unknown else [PAD, BOS, UNK]
        self.room = torch.empty(0, 0)

    def __call__(
        self, logits: Float[Tensor, "rows vocabulary"]
    ) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
        values, tokens = zip(*map(self.best, torch.split(logits, CHUNK)), strict=True)
        return torch.cat(values), torch.cat(tokens)

    def best(self, logits: Float[Tensor, "rows vocabulary"]) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
        """Top-k of a few rows."""
        logs = self.logs(logits)
        if logs[:, 0].isnan().any():
            raise no_distribution_error()
        for token in self.forbidden:
            logs[:, token] = IMPOSSIBLE
        vocabulary = logs.shape[1]
        if vocabulary < 4 * BLOCKS or self.count >= BLOCKS:
            return select_highest(logs, self.count)
        values, tokens = select_by_blocks(logs, self.count + 1)
        tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > IMPOSSIBLE)).any(1)
        values, tokens = values[:, : self.count], tokens[:, : self.count]
        if tied.any():
            values[tied], tokens[tied] = select_highest(logs[tied], self.count)
        return values, tokens

    def logs(self, logits: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """Log-probabilities, in float32 whatever the decoder's dtype; float64 stays."""
        rows, vocabulary = logits.shape
        if logits.dtype != torch.float32:
            logits = logits if logits.dtype == torch.float64 else logits.float()
        if self.room.shape != (CHUNK, vocabulary) or self.room.dtype != logits.dtype:
            self.room = logits.new_empty(CHUNK, vocabulary)
        return torch.log_softmax(logits, -1, out=self.room[:rows])


def select_by_blocks(
    logs: Float[Tensor, "rows vocabulary"], count: int
) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
    """Top-k of each row by blocks, best first, of equal ones any.

    Block b of n holds the columns b, b + n, b + 2n, ...: the rows of a matrix of n columns. The last few columns, which fill
    no row of it, are always compared.
    """
    rows, vocabulary = logs.shape
    height = vocabulary // BLOCKS
    whole = logs[:, : height * BLOCKS].view(rows, height, BLOCKS)
    _, blocks = whole.amax(1).topk(count)
    steps = torch.arange(0, height * BLOCKS, BLOCKS, device=logs.device)
    rest = torch.arange(height * BLOCKS, vocabulary, device=logs.device).expand(rows, -1)
    columns = torch.cat(((blocks[:, :, None] + steps).flatten(1), rest), dim=1)
    values, places = logs.gather(1, columns).topk(count)
    return values, columns.gather(1, places)
