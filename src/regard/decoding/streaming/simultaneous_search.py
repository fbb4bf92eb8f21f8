"""Simultaneous greedy search: writes a token as soon as the source received so far decides it."""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from regard.attention.types import State
from regard.data.special_tokens import BOS, EOS
from regard.decoding.logprobs import IMPOSSIBLE, compute_logprobs, mask_special_tokens, no_token_error
from regard.decoding.max_length import find_device
from regard.models.decoders import DecoderMemory
from regard.models.types import Decoder, Step


class ReceivedSource(NamedTuple):
    """Received part of a source: its memory, the length limit of the answer, and True in `whole` if it is complete."""

    memory: DecoderMemory
    length: int
    """Maximum length of an answer to a source that is at least so long."""
    whole: bool


def stream_certain_tokens(decoder: Decoder, hearing: Iterator[ReceivedSource]) -> Iterator[int]:
    """Yield the tokens of greedy search over the whole source, each as soon as it is certain, else wait for more source.

    Every cross-attention must move monotonically and hold in its state where it stopped, as Monotonic does. One that stopped
    at a key has read no later one: whatever arrives, it would stop there. One that reached the end of the received keys is
    undecided; its step is repeated when more has arrived.
    Raffel et al. 2017, https://arxiv.org/abs/1704.00784

    T tokens to a source that arrives in S parts take at most T + S steps.
    """
    heard = next(hearing)
    state, token, written = decoder.start(heard.memory), BOS, 0
    while token != EOS and not (heard.whole and written >= heard.length):
        step = None if written >= heard.length else try_step(decoder, token, heard, state)
        if step is None:
            heard = next(hearing)
        else:
            state, written = step.state, written + 1
            token = _choose_token(step, written)
            yield token


@torch.no_grad()
def try_step(decoder: Decoder, token: int, heard: ReceivedSource, state: State) -> Step | None:
    """Decoding step, or None if the source received so far does not decide it."""
    step = decoder.step(torch.tensor([token], device=find_device(heard.memory)), heard.memory, state)
    return step if heard.whole or has_stopped(step, heard.memory) else None


def has_stopped(step: Step, memory: DecoderMemory) -> bool:
    """Return True if every monotonic attention stopped at a key that has arrived."""
    walks = ((step.attended[name].state, source.values.shape[2]) for name, source in memory.memories.items())
    return all(bool((place < keys).all()) for place, keys in walks)


def _choose_token(step: Step, number: int) -> int:
    logs = mask_special_tokens(compute_logprobs(step.output))[0]
    if logs.max() == IMPOSSIBLE:
        raise no_token_error(number)
    return int(logs.argmax())
