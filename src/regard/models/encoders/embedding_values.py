"""Values from the bare word embeddings: an encoder whose states are keys alone."""

from typing import Any

from torch import nn

from regard.attention.types import Encoded
from regard.data.batch import Padded


class EmbeddingValues(nn.Module):
    """Encoder of token sequences with values of their own: a vector for each word, whatever stands around it.

        keys = encoder(s),    values_t = V s_t

    Russin et al. 2019, https://arxiv.org/abs/1904.09708: what is read of a word then holds nothing of its context, and what
    to read is decided by the context alone. V is a table beside the encoder's own. Final states are those of the encoder.
    """

    def __init__(self, encoder: Any, vocabulary: int, dropout: float = 0.0):
        super().__init__()
        self.encoder, self.size = encoder, encoder.size
        self.values = nn.Embedding(vocabulary, encoder.size)
        nn.init.uniform_(self.values.weight, -0.1, 0.1)
        self.drop = nn.Dropout(dropout)

    @property
    def embedding(self) -> Any:
        """Embedding of the encoder."""
        return self.encoder.embedding

    def forward(self, source: Padded) -> Encoded:
        encoded: Encoded = self.encoder(source)
        return encoded._replace(values=self.drop(self.values(source.data)))
