"""Greedy search over a source that still arrives: a token is written when what has arrived decides it."""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from regard.attention.types import State
from regard.data.text.vocabulary import BOS, EOS
from regard.decoding.logprobs import IMPOSSIBLE, likelihood, possible, stuck
from regard.decoding.max_length import device
from regard.models.decoders import Remembered
from regard.models.types import Decoder, Step


class Heard(NamedTuple):
    """What has arrived of a source: as the decoder remembers it, how long an answer may be, and whether this is all."""

    memory: Remembered
    length: int
    """The most tokens of an answer to a source that is at least so long."""
    whole: bool


def wait(decoder: Decoder, hearing: Iterator[Heard]) -> Iterator[int]:
    """The tokens of greedy search over the whole source, each as soon as it is certain; the next is heard when it is not.

    Every attention over the source must walk from left to right and say in its state where it stopped, as Monotonic does. A
    walk that stopped at a key has met no later one: whatever arrives, it would stop there. One that has come to the end of
    what has arrived says nothing yet; its step is taken again when more is there.
    Raffel et al. 2017, https://arxiv.org/abs/1704.00784

    T tokens to a source that arrives in S parts take at most T + S steps.
    """
    heard = next(hearing)
    state, token, written = decoder.start(heard.memory), BOS, 0
    while token != EOS and not (heard.whole and written >= heard.length):
        step = None if written >= heard.length else take(decoder, token, heard, state)
        if step is None:
            heard = next(hearing)
        else:
            state, written = step.state, written + 1
            token = _best(step, written)
            yield token


@torch.no_grad()
def take(decoder: Decoder, token: int, heard: Heard, state: State) -> Step | None:
    """One step, or None where what has arrived does not decide it."""
    step = decoder.step(torch.tensor([token], device=device(heard.memory)), heard.memory, state)
    return step if heard.whole or stopped(step, heard.memory) else None


def stopped(step: Step, memory: Remembered) -> bool:
    """Whether every walk over the source stopped at a key that is there."""
    walks = ((step.attended[name].state, kept.values.shape[2]) for name, kept in memory.memories.items())
    return all(bool((place < keys).all()) for place, keys in walks)


def _best(step: Step, number: int) -> int:
    logs = possible(likelihood(step.output))[0]
    if logs.max() == IMPOSSIBLE:
        raise stuck(number)
    return int(logs.argmax())
