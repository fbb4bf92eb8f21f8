"""Greedy search with few operations; equals `decoding.greedy` for plain search."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.special_tokens import BOS, EOS, PAD
from regard.decoding.engines.eager.linear import Buffers
from regard.decoding.engines.types import Array, Engine, Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import IMPOSSIBLE, no_distribution_error, no_token_error
from regard.tree import Tree


class GreedyStep(NamedTuple):
    """Tokens that one step chose for the active sentences."""

    sentences: Numbers
    tokens: Numbers
    logprobs: NDArray[np.float64]


def greedy(engine: Engine, memory: Tree, most: Numbers, length_penalty: float) -> list[Hypothesis]:
    """Greedy search: one target for each sentence of the memory, of 1 to `most` tokens.

    A beam of one keeps several candidates at each step; here only the argmax is computed, of equals the leftmost.
    """
    steps, rooms, taken = engine.begin(memory), Buffers(), list[GreedyStep]()
    sentences, tokens, parents = np.arange(len(most)), np.full(len(most), BOS), None
    while len(sentences):
        best, logprobs = choose_tokens(steps.step(torch.from_numpy(tokens), parents), rooms, len(taken) + 1)
        taken.append(GreedyStep(sentences, best, logprobs))
        staying = np.flatnonzero((best != EOS) & (most[sentences] > len(taken)))
        parents, tokens = None, best
        if len(staying) < len(sentences):
            sentences, tokens, parents = sentences[staying], best[staying], torch.from_numpy(staying)
            if len(staying):
                steps.leave(parents)
    return collect_hypotheses(taken, len(most), length_penalty)


def choose_tokens(logits: torch.Tensor, rooms: Buffers, length: int) -> tuple[Numbers, NDArray[np.float64]]:
    """Argmax token of each row and its log-probability, in float32 whatever the logits are; float64 stays."""
    if logits.dtype == torch.float32:
        logs: Array = torch.log_softmax(logits, -1, out=rooms(*logits.shape)).numpy()
    else:
        logs = (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(-1).numpy()
    if np.isnan(logs[:, 0]).any():
        raise no_distribution_error()
    logs[:, PAD] = logs[:, BOS] = IMPOSSIBLE
    tokens: Numbers = logs.argmax(1)
    logprobs = logs[np.arange(len(tokens)), tokens].astype(np.float64)
    if logprobs.min() == IMPOSSIBLE:
        raise no_token_error(length)
    return tokens, logprobs


def collect_hypotheses(taken: list[GreedyStep], sentences: int, length_penalty: float) -> list[Hypothesis]:
    """Collect the chosen tokens, sentence by sentence."""
    tokens: list[list[int]] = [[] for _ in range(sentences)]
    logprobs: list[list[float]] = [[] for _ in range(sentences)]
    for step in taken:
        for sentence, token, logprob in zip(*(tensor.tolist() for tensor in step), strict=True):
            tokens[sentence].append(token)
            logprobs[sentence].append(logprob)
    return [build_hypothesis(*arguments, length_penalty) for arguments in zip(tokens, logprobs, strict=True)]


def build_hypothesis(tokens: list[int], logprobs: list[float], length_penalty: float) -> Hypothesis:
    """Build one hypothesis."""
    score = 0.0
    for logprob in logprobs:
        score += logprob
    return Hypothesis(tokens, score, score / len(tokens) ** length_penalty, logprobs, tokens[-1] == EOS)
