"""Step-by-step decoding of one hypothesis per sentence, shared by greedy search and sampling."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.text.vocabulary import BOS, EOS
from regard.decoding.attention_weights import by_row
from regard.decoding.backpointers import Ending, History, Moment, nothing
from regard.decoding.constraints.state import Guard, unkept
from regard.decoding.hypothesis import Found
from regard.decoding.logprobs import IMPOSSIBLE, likelihood, possible, stuck
from regard.decoding.max_length import device, limits
from regard.decoding.penalties import normalise
from regard.models.types import Decoder
from regard.tree import Tree, select

Choose = Callable[[Tensor], Tensor]
"""Function that chooses one token per row from log-probabilities: (rows, vocabulary) -> (rows)."""


@torch.no_grad()
def walk(
    decoder: Decoder,
    memory: Tree,
    choose: Choose,
    *,
    length: int | Sequence[int],
    weights: bool,
    unknown: bool,
    guard: Guard | None = None,
) -> list[Found]:
    """Decode step by step: feed every sentence its chosen token until EOS; the sentence then leaves the batch.

    `normalised` is the mean log-probability of a token. A `guard` holds the constraints of each target.
    """
    most, where, history = limits(length, memory), device(memory), History(memory)
    endings: dict[int, Ending] = {}
    if guard is not None:
        guard.fit(most)
        if guard.includes:
            raise ValueError("a target that must hold phrases needs beam search: one hypothesis cannot try where they go")
    watched = None if guard is None else guard.start(range(len(most)))
    state = decoder.start(memory) if most else ()
    sentences, scores = list(range(len(most))), [0.0] * len(most)
    moment = Moment([BOS] * len(most), [0.0] * len(most), sentences)
    staying = [row for row in sentences if most[row] > 0]
    while staying:
        if len(staying) < len(sentences):
            chosen = torch.tensor(staying, device=where)
            (state, watched), memory = select((state, watched), chosen), select(memory, chosen)
            sentences, scores = [sentences[row] for row in staying], [scores[row] for row in staying]
        fed = Moment([moment.tokens[row] for row in staying], [moment.logprobs[row] for row in staying], staying)
        tokens = torch.tensor(fed.tokens, device=where)
        step = decoder.step(tokens, memory, state, weights=weights)
        history.add(fed, by_row(step.attended) if weights else None)
        logs = possible(likelihood(step.output), unknown)
        if guard is not None and watched is not None:
            watched = guard.after(watched, tokens)
            logs = guard.forbid(watched, logs)
        if (logs.amax(-1) == IMPOSSIBLE).any():
            raise stuck(len(history)) if guard is None else unkept(len(history))
        state, moment = step.state, _take(logs, choose)
        scores = [score + logprob for score, logprob in zip(scores, moment.logprobs, strict=True)]
        endings |= _end(moment, sentences, scores, len(history), most)
        staying = [row for row, sentence in enumerate(sentences) if sentence not in endings]
    return [history.found(endings[each], weights) if each in endings else nothing(weights) for each in range(len(most))]


def _take(logs: Float[Tensor, "rows vocabulary"], choose: Choose) -> Moment:
    """Chosen tokens and their log-probabilities, as the next step."""
    chosen: Int[Tensor, " rows"] = choose(logs)
    return Moment(chosen.tolist(), logs.gather(-1, chosen[:, None])[:, 0].tolist(), list(range(len(logs))))


def _end(moment: Moment, sentences: list[int], scores: list[float], length: int, most: list[int]) -> dict[int, Ending]:
    """Sentences that end here: with EOS, or at their maximum length."""
    return {
        sentence: Ending(
            sentence, length - 1, row, token, logprob, score, normalise(score, length, 1.0), finished=token == EOS
        )
        for row, (sentence, token, logprob, score) in enumerate(
            zip(sentences, moment.tokens, moment.logprobs, scores, strict=True)
        )
        if token == EOS or length == most[sentence]
    }
