import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.special_tokens import EOS
from regard.decoding import greedy as reference
from regard.decoding.engines.eager.greedy import choose_tokens, greedy
from regard.decoding.engines.eager.linear import Buffers
from regard.decoding.engines.eager.modules import EagerEngine

from ...decoders import Recurrent, Table, random_table, sources, table


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans(), most=st.lists(st.integers(1, 7), min_size=4, max_size=4))
def test_it_finds_what_the_reference_finds_bit_for_bit_ties_and_all(seed, coarse, most):
    tables = random_table(4, 7, sharpness=2.0, seed=seed).memory
    decoder = Table(tables.round() if coarse else tables)  # rounded logits tie
    found = greedy(EagerEngine(decoder), decoder.memory, np.array(most), length_penalty=1.0)
    assert found == reference(decoder, decoder.memory, length=most)


def test_states_stay_with_their_sentences_when_others_leave():
    torch.manual_seed(0)
    decoder = Recurrent()
    with torch.inference_mode():
        memory = decoder.remember(sources(9))
        most = np.arange(1, 10)[::-1].copy()
        found = greedy(EagerEngine(decoder), memory, most, length_penalty=1.0)
    assert [each.tokens for each in found] == [each.tokens for each in reference(decoder, memory, length=most.tolist())]
    assert decoder.sources[:9] != [9] * 9


def test_a_length_penalty_divides_the_score():
    decoder = table({1: {4: 0.5, 5: 0.25, 6: 0.25}, 4: {EOS: 1.0}})
    [found] = greedy(EagerEngine(decoder), decoder.memory, np.array([5]), length_penalty=2.0)
    assert found.tokens == [4, EOS]
    assert found.score == pytest.approx(np.log(0.5))
    assert found.normalised == pytest.approx(np.log(0.5) / 4)


def test_neither_padding_nor_a_beginning_is_chosen():
    logits = torch.zeros(1, 6)
    logits[0, :2] = 9.0
    logits[0, 4] = 1.0
    assert choose_tokens(logits, Buffers(), 1)[0].tolist() == [4]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_logits_of_other_precisions_are_read(dtype):
    logits = torch.randn(3, 20).to(dtype)
    tokens, logprobs = choose_tokens(logits, Buffers(), 1)
    exact = (logits if dtype == torch.float64 else logits.float()).log_softmax(-1)
    exact[:, :2] = -torch.inf
    assert tokens.tolist() == exact.argmax(1).tolist()
    assert logprobs.tolist() == exact.amax(1).tolist()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_distribution_is_an_error(bad):
    logits = torch.zeros(2, 6)
    logits[1, 5] = bad
    with pytest.raises(ValueError, match="decoding needs an output that gives some token a probability"):
        choose_tokens(logits, Buffers(), 1)


def test_a_sentence_without_a_way_on_is_an_error():
    decoder = table({1: {4: 1.0}, 4: {0: 1.0}})
    with pytest.raises(ValueError, match="decoding needs a possible token at step 2"):
        greedy(EagerEngine(decoder), decoder.memory, np.array([5]), length_penalty=1.0)
