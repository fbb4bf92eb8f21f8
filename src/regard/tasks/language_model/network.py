"""Network of a language model: a decoder without a source."""

from dataclasses import replace

import torch
from torch import nn

from regard.attention.types import Encoded
from regard.config import Dropout
from regard.data.batch import Padded
from regard.models.decoders.transformer import Transformer
from regard.models.seq2seq import Seq2Seq, build_decoder, initialise
from regard.tasks.language_model.config import LanguageNetwork


class NoSource(nn.Module):
    """Encoder in place of one that reads: the number 1 for every source.

    A decoder without attention makes of it a learned initial state (recurrent) or a learned vector beside every input.
    """

    size = 1

    def forward(self, source: Padded) -> Encoded:
        one = torch.ones(len(source.data), 1, 1, device=source.data.device)
        return Encoded(one, None, (one,))


def build_network(model: LanguageNetwork, dropout: Dropout, vocabulary: int, longest: int = 1024) -> Seq2Seq:
    """Build a decoder without a source, for so many tokens of texts of at most this length."""
    decoder = build_decoder(replace(model, summary="initial"), dropout, NoSource.size, vocabulary, None, (1, longest))
    if isinstance(decoder, Transformer):
        initialise(decoder)
    return Seq2Seq(NoSource(), decoder)
