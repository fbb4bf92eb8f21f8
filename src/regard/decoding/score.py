"""Forced decoding: log-probabilities of given targets."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.batch import Padded, shifted
from regard.decoding.logprobs import compute_logprobs
from regard.decoding.max_length import find_tensor
from regard.models.types import Decoder
from regard.tree import Tree


class TargetScores(NamedTuple):
    """Log-probability of each token, 0 for padding, and of each target: their sum, in float64 on the CPU."""

    logprobs: Float[Tensor, "batch time"]
    scores: Float[Tensor, " batch"]


@torch.no_grad()
def rate(decoder: Decoder, memory: Tree, target: Padded) -> TargetScores:
    """Score given targets by teacher forcing.

        score(Y) = sum_t log P(y_t | X, y_1 ... y_t-1)

    The targets are as search returns them: without BOS, with EOS. For such a target this is its score.
    """
    first = find_tensor(memory)
    target = target.to(first.device)
    batch, time = target.data.shape
    if batch != len(first):
        raise ValueError(f"rate needs one target for each source, got {batch} targets and {len(first)} sources")
    if time == 0:
        return TargetScores(torch.zeros(batch, 0), torch.zeros(batch, dtype=torch.float64))
    logs = compute_logprobs(decoder(shifted(target.data), memory).output)
    logprobs = logs.gather(-1, target.data[..., None])[..., 0].masked_fill(~target.keep, 0.0).cpu()
    return TargetScores(logprobs, logprobs.double().sum(1))
