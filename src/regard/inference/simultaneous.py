"""Answer a source while it still arrives: a token is written when the attention has stopped inside what is there."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch

from regard.attention.mechanisms.monotonic import Monotonic
from regard.attention.types import Memory
from regard.config import Search
from regard.data.special_tokens import EOS
from regard.data.table import Record
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.streaming.simultaneous_search import ReceivedSource, stream_certain_tokens
from regard.decoding.streaming.stable_text import StableText
from regard.errors import ConfigError, RefusedError
from regard.inference.streaming import pieces as told
from regard.inference.streaming import streamable
from regard.models.decoders import DecoderMemory
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.encoders import incremental
from regard.models.seq2seq import Seq2Seq

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor


def listen(trained: "SequencePredictor", pieces: Iterable[str], beam: int) -> Iterator[str]:
    """The pieces of an answer; the next piece of the source is asked for when what has arrived decides no more.

    Raises at once where the model or its settings need the whole source.
    """
    codec = trained.text_codec("to answer while the source still arrives")
    greedy(trained.config.search, beam)
    reason = covers(trained.model) or codec.stream_obstacle
    if reason is not None:
        raise RefusedError(f"this model has to wait for the whole source: {reason}; ask it with predict, or with --stream")
    return _listen(trained, pieces)


def _listen(trained: "SequencePredictor", pieces: Iterable[str]) -> Iterator[str]:
    with nullcontext() if trained.recorder is None else trained.recorder.pause():
        decoder = trained.plan([0], beams=1).decoder
        tokens = stream_certain_tokens(decoder, receive_source(trained, pieces))
        yield from told(StableText(trained.text), accumulate([token] for token in tokens))


def greedy(search: Search, beam: int) -> None:
    """Raise for settings that would need more than one hypothesis, or another search than the one that waits."""
    streamable(search)
    if beam != 1:
        raise ConfigError(
            f"to answer while the source arrives follows one hypothesis, got a beam of {beam}: what is written cannot be "
            "taken back; give beam=1 (--beam 1)"
        )
    if search.block_ngrams or search.precision not in ("auto", "float32"):
        raise ConfigError(
            "to answer while the source arrives needs search.block_ngrams=0 and search.precision=float32, got "
            f"{search.block_ngrams} and {search.precision}"
        )


def covers(model: Any) -> str | None:
    """None where a model may write before it has read everything, else the reason that it may not."""
    if not isinstance(model, Seq2Seq):
        return f"{type(model).__name__} takes it as one (a single model, without --engine, need not)"
    looks = [
        attention
        for name, attention in model.attentions().items()
        if name.startswith("decoder.") and is_cross_attention(name)
    ]
    if not looks:
        return (
            "it has no attention, and knows its source by its last state (model.attention=monotonic or mocha walks over it)"
        )
    if strange := [look for look in looks if not isinstance(look, Monotonic)]:
        return f"its attention, {type(strange[0]).__name__}, looks at all of it (model.attention=monotonic or mocha walk)"
    if isinstance(model.decoder, Recurrent) and model.decoder.starts:
        return "its decoder begins with the encoder's last state (model.initial=zeros does not)"
    if isinstance(model.decoder, Convolution):
        return (
            "its convolutional decoder scales what it reads by the length of the source (a recurrent or transformer one not)"
        )
    return incremental.covers(model.encoder)


def receive_source(trained: "SequencePredictor", pieces: Iterable[str]) -> Iterator[ReceivedSource]:
    """Source so far, each time that some of its tokens are settled."""
    model = trained.model
    assert isinstance(model, Seq2Seq), "`covers` has seen to it"
    where = next(model.parameters()).device
    memory, state, count = None, (), 0
    for numbers in trained.codec.stream(_as_it_stands(trained, pieces)):
        with torch.no_grad():
            encoded, state = incremental.encode_incrementally(model.encoder, torch.tensor([numbers], device=where), state)
            memory = join_weights(memory, model.decoder.remember(encoded))
        count, whole = count + len(numbers), numbers[-1] == EOS
        yield ReceivedSource(memory, trained.longest(count if whole else count + 1), whole)  # the end is still to come


def join_weights(before: DecoderMemory | None, more: DecoderMemory) -> DecoderMemory:
    """A memory with more behind its end."""
    if before is None:
        return more
    both = {name: (before.memories[name], memory) for name, memory in more.memories.items()}
    return more._replace(memories={name: _behind(*pair) for name, pair in both.items()})


def _behind(first: Memory, second: Memory) -> Memory:
    assert first.keep is not None
    assert second.keep is not None
    keys, values = (torch.cat(pair, dim=2) for pair in zip(first[:2], second[:2], strict=True))
    return Memory(keys, values, torch.cat((first.keep, second.keep), dim=1))


def _as_it_stands(trained: "SequencePredictor", pieces: Iterable[str]) -> Iterator[str]:
    """These pieces, as long as the task does not preprocess a source: else later text may change earlier tokens."""
    text = ""
    for piece in pieces:
        text += piece
        if trained.task.prepare(Record(text, None, "input:1")).source != text:
            raise RefusedError(
                f"the task {trained.name} rewrites a source before it is read, so its beginning says little while it "
                "arrives; ask for it with predict"
            )
        yield piece
