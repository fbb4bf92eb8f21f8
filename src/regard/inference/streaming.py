"""An answer as it is decided: pieces of text that together are what `predict` gives."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from regard.config import Search
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.streaming.search import stream_decided_tokens
from regard.decoding.streaming.stable_text import StableText
from regard.errors import ConfigError
from regard.inference.predictor import Input

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor


def streamable(search: Search) -> None:
    """Raise for settings of a search that know their answer only when it is whole."""
    if search.mbr != "none":
        raise ConfigError(
            f"search.mbr={search.mbr} compares whole answers, so nothing is decided before the last one is there; leave "
            "it out, or use predict"
        )
    if search.beam_groups > 1:
        raise ConfigError(
            f"search.beam_groups={search.beam_groups} are there to differ, so little is decided before the end; leave them "
            "out, or use predict"
        )
    if search.lm is not None:
        raise ConfigError(
            f"search.lm={search.lm} is for answers that are searched for as a whole; leave it out, or use predict"
        )
    if search.unknown != "keep":
        raise ConfigError(
            f"search.unknown={search.unknown} replaces words when the answer is whole; search.unknown=keep lets them stand"
        )


def stream(trained: "SequencePredictor", source: Input, beam: int, wish: ConstraintSpec) -> Iterator[str]:
    """The pieces of the answer to a text, none of them empty, each as soon as nothing can change it."""
    with nullcontext() if trained.recorder is None else trained.recorder.pause():
        [example] = trained.codec.encode_all([trained.read(source)], over_long="truncate").examples
        [(_, batch)] = trained.codec.loader([example], trained.codec.budget([example], 1)).in_order()
        with torch.no_grad():
            memory = trained.model.encode(batch.source.to(next(trained.model.parameters()).device))
        plan = trained.plan(trained.limits(batch.source), beam, [wish])
        decided = stream_decided_tokens(plan.finder, plan.decoder, memory, plan.lengths[0], guard=plan.guard)
        codec = trained.codec_of(example)
        yield from pieces(StableText(lambda tokens: trained.task.finish(codec.decode(tokens))), decided)


def pieces(written: StableText, decided: Iterable[Sequence[int]]) -> Iterator[str]:
    """Text that each of several prefixes of an answer adds to the one before; the last of them is the whole."""
    tokens: Sequence[int] = ()
    for tokens in decided:
        if piece := written.more(tokens):
            yield piece
    if piece := written.rest(tokens):
        yield piece
