"""Attention weights after a search: a second pass over the answers gives those of the search that computes them itself."""

import logging
from dataclasses import replace
from itertools import product

import pytest
import torch

from regard.config import Search
from regard.data.batch import pad
from regard.data.special_tokens import EOS
from regard.decoding import beam
from regard.decoding import search as file
from regard.decoding.attention_weights import compute_target_weights
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard
from regard.decoding.search import FEW_SOURCES, Searcher

from ..models.small import ATTENTIONS, KINDS, made
from .decoders import Recurrent, Transformer, random_table, sources

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2], [10, 3, 4, 5, 6, 7, 2]])
FEW = [
    ("transformer, transformer, pre", "transformer"),
    ("recurrent, recurrent, lstm, luong", "additive"),
    ("recurrent, recurrent, gru, bahdanau", "mocha"),
    ("convolution, convolution", "bilinear"),
]
"""Each kind of decoder; the soak has all models."""


def spelt(tokens):
    return " ".join(str(token) for token in tokens if token != EOS)


def agree(one, other):
    for left, right in zip(one, other, strict=True):
        assert [each.tokens for each in left] == [each.tokens for each in right]
        for mine, theirs in zip(left, right, strict=True):
            assert mine.weights.keys() == theirs.weights.keys()
            for name, weights in mine.weights.items():
                torch.testing.assert_close(weights, theirs.weights[name], atol=2e-6, rtol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("kind", "attention"),
    [*FEW, *(pytest.param(*each, marks=pytest.mark.soak) for each in product(KINDS, ATTENTIONS) if each not in FEW)],
)
def test_every_model_attends_after_its_search_as_it_does_during_one(kind, attention):
    torch.manual_seed(3)
    built = made(attention, target=500, **KINDS[kind]).eval()
    with torch.no_grad():
        memory = built.encode(SOURCE)
    found = Searcher(Search(beam=3), spelt)(built.decoder, memory, [12, 0, 5, 9], best=2, weights=True)
    agree(found, beam(built.decoder, memory, beams=3, best=2, length=[12, 0, 5, 9], weights=True))


@pytest.mark.parametrize("decoder", [Recurrent(), Transformer()], ids=["recurrent", "transformer"])
def test_given_targets_have_the_weights_of_the_search_that_found_them(decoder):
    memory = decoder.eval().remember(sources(5))
    found = [few[0] for few in beam(decoder, memory, beams=2, length=9, weights=True)]
    weights = compute_target_weights(decoder, memory, [each.tokens for each in found])
    agree([[each._replace(weights=mine)] for each, mine in zip(found, weights, strict=True)], [[each] for each in found])


def engines(caplog, model, count, settings=Search(max_length=5), **options):
    caplog.clear()
    with caplog.at_level(logging.INFO, "regard.decoding"), torch.no_grad():
        memory = model.encode(pad([[4, 5, 2]] * count))
        Searcher(settings, spelt)(model.decoder, memory, [5] * count, **options)
    return caplog.messages


def test_the_engine_and_the_reason_for_it_are_logged(caplog):
    model = made("transformer", **KINDS["transformer, transformer, pre"]).eval()
    assert engines(caplog, model, 2) == ["engine: eager.transformer on cpu"]
    assert engines(caplog, model, 2, weights=True) == [
        "engine: eager.transformer on cpu; the attention comes from a second pass over the answers"
    ]
    assert engines(caplog, model, FEW_SOURCES + 1, weights=True) == [
        "engine: reference on cpu; the attention of more than 4 inputs at once costs least during the search"
    ]
    guard = Guard([Constraints()], Spelling.numbers(model.decoder.embedding.table.num_embeddings), 2)
    for options, reason in (
        ({"guard": guard}, "prefixes, phrases, block_ngrams and grammars are constraints on each step"),
        ({"settings": Search(coverage_penalty=0.1)}, "search.coverage_penalty needs the attention of each step"),
        ({"settings": Search(beam=2, beam_groups=2)}, "search.beam_groups are searched one after the other"),
    ):
        assert engines(caplog, model, 1, **options) == [f"engine: reference on cpu; {reason}"]


def test_a_decoder_that_no_engine_covers_attends_during_its_search(caplog, monkeypatch):
    decoder = Recurrent().eval()
    memory = decoder.remember(sources(2))
    monkeypatch.setattr(file, "compute_target_weights", lambda *given: pytest.fail("a second pass costs more"))
    with caplog.at_level(logging.INFO, "regard.decoding"):
        found = Searcher(Search(), spelt)(decoder, memory, [9] * 2, weights=True)
    assert found[0][0].weights["attention"].shape[1] == len(found[0][0].tokens)
    assert caplog.messages[0].startswith("engine: reference on cpu; ")


def test_an_engine_that_is_asked_for_is_kept_for_many_sources(caplog):
    searcher = Searcher(replace(Search(), beam=2), spelt, compiled=True)
    assert searcher.attends_after(torch.zeros(FEW_SOURCES + 1, 2))
    assert not Searcher(Search(), spelt).attends_after(torch.zeros(FEW_SOURCES + 1, 2))


def test_an_answer_without_tokens_and_a_decoder_without_attention_have_no_weights():
    decoder = random_table(2, 9)
    found = Searcher(Search(), spelt)(decoder.eval(), decoder.memory, [0, 4], weights=True)
    assert [each.weights for [each] in found] == [{}, {}]
