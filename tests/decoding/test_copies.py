import pytest
import torch

from regard.config import AttentionPart, Dropout, Model, Search
from regard.data.batch import pad
from regard.data.special_tokens import EOS, NO_TOKEN
from regard.decoding.beam import beam
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard
from regard.decoding.copies import find_copies
from regard.decoding.engines.select import find_engine_module
from regard.decoding.greedy import greedy
from regard.decoding.search import Searcher
from regard.models.seq2seq import build

SIZE = 7
SOURCE = pad([[4, 3, 5, 2], [3, 2]])._replace(copies=pad([[4, SIZE + 1, 5, 2], [SIZE, 2]], NO_TOKEN).data)


@pytest.fixture(params=["recurrent", "transformer"])
def network(request):
    """One that copies whatever it can: its gate is almost shut."""
    torch.manual_seed(0)
    part = AttentionPart("additive")
    model = Model(decoder=request.param, encoder=request.param, attention=part, hidden_size=8, heads=2, copy=True)
    built = build(model, Dropout(0.0, 0.0), SIZE, SIZE, joint=True).eval()
    built.decoder.outcome.copying.gate.bias.data.fill_(-8.0)
    return built


def test_searches_write_words_outside_the_vocabulary(network):
    memory = network.encode(SOURCE)
    one, other = greedy(network.decoder, memory, length=4)
    assert {*one.tokens} <= {4, SIZE + 1, 5, EOS}
    assert {*other.tokens} <= {SIZE, EOS}
    beams = beam(network.decoder, memory, beams=3, length=4, best=2)
    fast = Searcher(Search(beam=3), str)(network.decoder, memory, [4, 4], best=2)
    assert [[found.tokens for found in few] for few in beams] == [[found.tokens for found in few] for few in fast]
    assert max(token for few in beams for found in few for token in found.tokens) >= SIZE


def test_no_compiled_engine_covers_it_and_it_says_why(network):
    reason, kind = find_engine_module(network.decoder, network.encode(SOURCE))
    assert kind is None
    assert "needs an output that is nothing but a projection" in reason


def test_an_ngram_of_copied_words_is_not_repeated(network):
    memory = network.encode(SOURCE)
    guard = Guard([Constraints(), Constraints()], Spelling.numbers(SIZE), block=1)
    for found in greedy(network.decoder, memory, length=4, guard=guard):
        assert len(set(found.tokens)) == len(found.tokens)


def test_what_was_copied_has_a_place_and_a_share(network):
    memory = network.encode(SOURCE)
    one, other = find_copies(network.decoder, memory, [[SIZE + 1, 5, EOS], [SIZE, 5, EOS]])
    assert [(copy.target, copy.source) for copy in one] == [(0, 1), (1, 2), (2, 3)]
    assert [(copy.target, copy.source) for copy in other] == [(0, 0), (2, 1)]
    assert all(0.5 < copy.share <= 1.0 for copy in (*one, *other))
    assert other[0].share == pytest.approx(1.0)


def test_a_decoder_that_generates_copies_nothing(network):
    network.decoder.outcome.copying.gate.bias.data.fill_(30.0)
    memory = network.encode(SOURCE)
    assert find_copies(network.decoder, memory, [[5, EOS], [5, EOS]]) == [[], []]
    assert find_copies(network.decoder, memory, [[], []]) == [[], []]
