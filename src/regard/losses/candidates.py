"""Candidates for sequence-level training: outputs of the model itself and their log-probabilities.

They are sampled without gradients and in eval mode (no dropout), from the generators that every step seeds anew. Their
log-probabilities are then computed once more, with gradients, by teacher forcing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.data.batch import pad, shifted
from regard.data.modality import Source
from regard.data.special_tokens import BOS, PAD
from regard.decoding.greedy import greedy
from regard.decoding.sample import sample
from regard.models.seq2seq import Seq2Seq
from regard.tree import repeat, select

Outputs = list[list[list[int]]]
"""Some outputs for each source; those that are finished end with EOS."""


class OutputScores(NamedTuple):
    """Log-probability log p of each output of each source; `keep` is False where a source has fewer."""

    logs: Float[Tensor, "batch outputs"]
    keep: Bool[Tensor, "batch outputs"]


@torch.no_grad()
def sample_outputs(model: Seq2Seq, source: Source, longest: list[int], count: int) -> Outputs:
    """Sample `count` outputs for each source from the model's distribution."""
    with switch_to_eval(model):
        memory = repeat(model.encode(source), count)
        found = sample(model.decoder, memory, length=[each for each in longest for _ in range(count)])
    return [[each.tokens for each in found[first : first + count]] for first in range(0, len(found), count)]


@torch.no_grad()
def decode_greedily(model: Seq2Seq, source: Source, longest: list[int]) -> list[list[int]]:
    """Greedy search output for each source."""
    with switch_to_eval(model):
        return [each.tokens for each in greedy(model.decoder, model.encode(source), length=longest)]


@contextmanager
def switch_to_eval(model: torch.nn.Module) -> Iterator[None]:
    """Eval mode for a while."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def score_outputs(model: Seq2Seq, source: Source, outputs: Outputs) -> OutputScores:
    """Log-probability of each output, with gradients: one pass of the encoder, and one over all outputs.

        log p(y | x) = Σ_t log p(y_t | x, y_1 ... y_t-1)

    among the tokens that an output may have: PAD and BOS are never sampled.
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
    return OutputScores(grid.masked_scatter(keep, logs.view_as(target.data).sum(1)), keep)
