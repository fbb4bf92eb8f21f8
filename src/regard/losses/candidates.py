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
"""Several outputs for each source; finished ones end with EOS."""


class OutputScores(NamedTuple):
    """Log-probability log p of each output of each source; `keep` is False where a source has fewer."""

    log_probabilities: Float[Tensor, "batch outputs"]
    keep: Bool[Tensor, "batch outputs"]


@torch.no_grad()
def sample_outputs(model: Seq2Seq, source: Source, max_lengths: list[int], count: int) -> Outputs:
    """Sample `count` outputs for each source from the model's distribution."""
    with switch_to_eval(model):
        memory = repeat(model.encode(source), count)
        hypotheses = sample(model.decoder, memory, length=[length for length in max_lengths for _ in range(count)])
    return [
        [hypothesis.tokens for hypothesis in hypotheses[first : first + count]] for first in range(0, len(hypotheses), count)
    ]


@torch.no_grad()
def decode_greedily(model: Seq2Seq, source: Source, max_lengths: list[int]) -> list[list[int]]:
    """Greedy search output for each source."""
    with switch_to_eval(model):
        return [hypothesis.tokens for hypothesis in greedy(model.decoder, model.encode(source), length=max_lengths)]


@contextmanager
def switch_to_eval(model: torch.nn.Module) -> Iterator[None]:
    """Context in which a model is in eval mode; afterwards in its former mode."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def score_outputs(model: Seq2Seq, source: Source, outputs: Outputs) -> OutputScores:
    """Log-probability of each output, with gradients: one pass of the encoder, and one over all outputs.

        log p(y | x) = Σ_t log p(y_t | x, y_1 ... y_t-1)

    with PAD and BOS left out of the softmax, since they are never sampled.
    """
    counts = torch.tensor([len(candidate) for candidate in outputs])
    device = source.data.device
    target = pad([candidate for candidates in outputs for candidate in candidates]).to(device)
    rows = torch.arange(len(outputs)).repeat_interleave(counts).to(device)
    step = model.decoder(shifted(target.data), select(model.encode(source), rows))
    logits = step.output.float().index_fill(-1, torch.tensor([PAD, BOS], device=device), -torch.inf)
    labels = target.data.masked_fill(~target.keep, -100)
    log_probabilities = -functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="none"
    )
    keep = torch.arange(int(counts.max()))[None] < counts[:, None]
    grid = log_probabilities.new_zeros(keep.shape)
    keep = keep.to(device)
    return OutputScores(grid.masked_scatter(keep, log_probabilities.view_as(target.data).sum(1)), keep)
