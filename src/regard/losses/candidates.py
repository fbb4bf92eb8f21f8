"""Candidates: outputs that a model writes itself while it is trained, and how likely it finds them.

They are drawn without gradients, as they would be in use (no dropout), from the generators that every step seeds anew. Their
likelihood is then taken once more, with gradients, as that of any target.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.data.batch import pad, shifted
from regard.data.text.vocabulary import BOS, PAD
from regard.decoding.greedy import greedy
from regard.decoding.sample import sample
from regard.models.seq2seq import Seq2Seq
from regard.models.types import Source
from regard.tree import repeat, select

Outputs = list[list[list[int]]]
"""For each source some outputs, EOS at the end of those that have ended."""


class Rated(NamedTuple):
    """log p of each output of each source; `keep` is False where a source has fewer."""

    logs: Float[Tensor, "batch outputs"]
    keep: Bool[Tensor, "batch outputs"]


@torch.no_grad()
def drawn(model: Seq2Seq, source: Source, longest: list[int], count: int) -> Outputs:
    """So many outputs for each source, drawn as often as the model finds them likely."""
    with resting(model):
        memory = repeat(model.encode(source), count)
        found = sample(model.decoder, memory, length=[each for each in longest for _ in range(count)])
    return [[each.tokens for each in found[first : first + count]] for first in range(0, len(found), count)]


@torch.no_grad()
def best(model: Seq2Seq, source: Source, longest: list[int]) -> list[list[int]]:
    """What greedy search gives for each source."""
    with resting(model):
        return [each.tokens for each in greedy(model.decoder, model.encode(source), length=longest)]


@contextmanager
def resting(model: torch.nn.Module) -> Iterator[None]:
    """The model as it is in use, for a while."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def rated(model: Seq2Seq, source: Source, outputs: Outputs) -> Rated:
    """How likely the model finds each output, with gradients: one pass over all of them, one of the encoder.

        log p(y | x) = Σ_t log p(y_t | x, y_1 ... y_t-1)

    among the tokens that an output may have: PAD and BOS are never drawn.
    """
    counts = torch.tensor([len(each) for each in outputs])
    where = source.data.device
    target = pad([each for several in outputs for each in several]).to(where)
    rows = torch.arange(len(outputs)).repeat_interleave(counts).to(where)
    step = model.decoder(shifted(target.data), select(model.encode(source), rows))
    logits = step.output.float().index_fill(-1, torch.tensor([PAD, BOS], device=where), -torch.inf)
    wanted = target.data.masked_fill(~target.keep, -100)
    logs = -functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100, reduction="none")
    keep = torch.arange(int(counts.max()))[None] < counts[:, None]
    grid = logs.new_zeros(keep.shape)
    keep = keep.to(where)
    return Rated(grid.masked_scatter(keep, logs.view_as(target.data).sum(1)), keep)
