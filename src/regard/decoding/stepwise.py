"""Step-by-step decoding of one hypothesis per sentence, shared by greedy search and sampling."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS, EOS
from regard.decoding.attention_weights import collect_weights_by_row
from regard.decoding.backpointers import Ending, History, SearchStep, make_empty_hypothesis
from regard.decoding.constraints.state import Guard, unsatisfiable_error
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import IMPOSSIBLE, compute_logprobs, mask_special_tokens, no_token_error
from regard.decoding.max_length import find_device, resolve_limits
from regard.decoding.penalties import penalise_length
from regard.models.types import Decoder
from regard.tree import Tree, select

ChooseToken = Callable[[Tensor], Tensor]
"""Function that chooses one token per row from log-probabilities: (rows, vocabulary) -> (rows)."""


@torch.no_grad()
def decode_stepwise(
    decoder: Decoder,
    memory: Tree,
    choose: ChooseToken,
    *,
    length: int | Sequence[int],
    weights: bool,
    unknown: bool,
    guard: Guard | None = None,
) -> list[Hypothesis]:
    """Decode step by step: feed every sentence its chosen token until EOS; the sentence then leaves the batch.

    `normalised` is the mean log-probability of a token. A `guard` holds the constraints of each target.
    """
    most, where, history = resolve_limits(length, memory), find_device(memory), History(memory)
    endings: dict[int, Ending] = {}
    if guard is not None:
        guard.fit(most)
        if guard.includes:
            raise ValueError("a target that must hold phrases needs beam search: one hypothesis cannot try where they go")
    watched = None if guard is None else guard.start(range(len(most)))
    state = decoder.start(memory) if most else ()
    sentences, scores = list(range(len(most))), [0.0] * len(most)
    moment = SearchStep([BOS] * len(most), [0.0] * len(most), sentences)
    staying = [row for row in sentences if most[row] > 0]
    while staying:
        if len(staying) < len(sentences):
            chosen = torch.tensor(staying, device=where)
            (state, watched), memory = select((state, watched), chosen), select(memory, chosen)
            sentences, scores = [sentences[row] for row in staying], [scores[row] for row in staying]
        fed = SearchStep([moment.tokens[row] for row in staying], [moment.logprobs[row] for row in staying], staying)
        tokens = torch.tensor(fed.tokens, device=where)
        step = decoder.step(tokens, memory, state, weights=weights)
        history.add(fed, collect_weights_by_row(step.attended) if weights else None)
        logs = mask_special_tokens(compute_logprobs(step.output), unknown)
        if guard is not None and watched is not None:
            watched = guard.after(watched, tokens)
            logs = guard.forbid(watched, logs)
        if (logs.amax(-1) == IMPOSSIBLE).any():
            raise no_token_error(len(history)) if guard is None else unsatisfiable_error(len(history))
        state, moment = step.state, _choose_tokens(logs, choose)
        scores = [score + logprob for score, logprob in zip(scores, moment.logprobs, strict=True)]
        endings |= _collect_endings(moment, sentences, scores, len(history), most)
        staying = [row for row, sentence in enumerate(sentences) if sentence not in endings]
    return [
        history.backtrace(endings[row], weights) if row in endings else make_empty_hypothesis(weights)
        for row in range(len(most))
    ]


def _choose_tokens(logs: Float[Tensor, "rows vocabulary"], choose: ChooseToken) -> SearchStep:
    """Chosen tokens and their log-probabilities, as the next step."""
    chosen: Int[Tensor, " rows"] = choose(logs)
    return SearchStep(chosen.tolist(), logs.gather(-1, chosen[:, None])[:, 0].tolist(), list(range(len(logs))))


def _collect_endings(
    moment: SearchStep, sentences: list[int], scores: list[float], length: int, most: list[int]
) -> dict[int, Ending]:
    """Sentences that end here: with EOS, or at their maximum length."""
    return {
        sentence: Ending(
            sentence, length - 1, row, token, logprob, score, penalise_length(score, length, 1.0), finished=token == EOS
        )
        for row, (sentence, token, logprob, score) in enumerate(
            zip(sentences, moment.tokens, moment.logprobs, scores, strict=True)
        )
        if token == EOS or length == most[sentence]
    }
