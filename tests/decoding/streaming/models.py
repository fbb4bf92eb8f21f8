"""Small models with wild weights, so that answers differ, and texts to ask them."""

from dataclasses import replace
from functools import cache

import torch

from regard import tasks
from regard.config import AttentionPart, Data, Model, Search
from regard.data.text.codec import TextCodec
from regard.inference.sequence_predictor import SequencePredictor
from regard.tasks.translate import Config

RECORDS, _ = tasks.find("translate").synthesise(60, 0)
TEXTS = [record.source for record in RECORDS]
DECODERS = ("recurrent", "convolution", "transformer")
ONE_WAY = {
    "luong": {"bidirectional": False, "initial": "zeros"},
    "bahdanau, two layers": {"bidirectional": False, "initial": "zeros", "cell": "gru", "layers": 2, "order": "bahdanau"},
    "transformer over cells": {"bidirectional": False, "decoder": "transformer"},
    "transformer": {"encoder": "transformer", "decoder": "transformer", "self_attention": "causal", "layers": 2},
    "cells over rotary": {
        "encoder": "transformer",
        "self_attention": "rotary+causal",
        "positions": "none",
        "initial": "zeros",
    },
}
"""Models that may write before they have read everything, if their attention lets them."""


@cache
def fitted(tokens: str) -> TextCodec:
    return TextCodec.fit(RECORDS, Data(tokenizer=tokens, vocab_size=300))


def codec(tokens: str, **settings) -> TextCodec:
    """The tokens of a kind, learnt once for all tests."""
    return replace(fitted(tokens), **settings)


def trained(attention="additive", tokens="words", seed=0, search=None, **model) -> SequencePredictor:
    """A model of translate whose weights are drawn far from zero."""
    torch.manual_seed(seed)
    made = Model(hidden_size=8, attention=AttentionPart(attention), **model)
    config = Config(data=Data(tokenizer=tokens), model=made, search=search or Search(max_length=12))
    network = tasks.build(config, codec(tokens))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return SequencePredictor(tasks.bind("translate"), config, codec(tokens), network)


def stopping(**model) -> SequencePredictor:
    """One whose attention always stops at once: it never needs more than the first token."""
    found = trained("monotonic", bidirectional=False, initial="zeros", **model)
    torch.nn.init.constant_(found.model.decoder.cross.score.r, 100.0)
    return found


def answer(model: SequencePredictor, text: str, **options) -> str:
    """What `predict` says."""
    return model.predict([text], **options)[0].text
