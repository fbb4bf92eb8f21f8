import pytest
import torch

from regard.data.special_tokens import EOS, UNK
from regard.decoding import greedy
from regard.decoding.greedy import choose_most_likely
from regard.tree import select

from .decoders import Recurrent, Table, Transformer, apart, by_hand, random_table, sources, table, together

DECODERS = [Recurrent, Transformer]


def test_it_takes_the_most_likely_token_until_the_end():
    decoder = table({1: {4: 0.6, 5: 0.4}, 4: {5: 0.7, EOS: 0.3}, 5: {EOS: 0.9, 4: 0.1}})
    (found,) = greedy(decoder, decoder.memory, length=9)
    assert found.tokens == [4, 5, EOS]
    assert found.finished
    torch.testing.assert_close(torch.tensor(found.logprobs).exp(), torch.tensor([0.6, 0.7, 0.9]))


def test_of_equally_likely_tokens_the_lowest_wins():
    assert choose_most_likely(torch.tensor([[0.0, 2.0, 2.0]])).tolist() == [1]
    found = greedy(Table(torch.zeros(1, 8, 8)), torch.zeros(1, 8, 8), length=3)
    assert found[0].tokens == [EOS]


def test_the_limit_cuts_a_target_off_and_says_so():
    decoder = table({1: {4: 1.0}, 4: {4: 1.0}})
    (found,) = greedy(decoder, decoder.memory, length=3)
    assert found.tokens == [4, 4, 4]
    assert not found.finished


def test_a_limit_of_nothing_finds_nothing_and_asks_nothing():
    decoder = random_table(2, 8)
    assert greedy(decoder, decoder.memory, length=0) == [([], 0.0, 0.0, [], False, None, None)] * 2
    assert decoder.rows == []
    assert greedy(decoder, decoder.memory, length=0, weights=True)[0].weights == {}


def test_a_limit_of_one_finds_one_token():
    decoder = random_table(2, 8)
    assert [len(each.tokens) for each in greedy(decoder, decoder.memory, length=1)] == [1, 1]


def test_each_sentence_may_have_its_own_limit():
    decoder = table({1: {4: 1.0}, 4: {4: 1.0}}, sources=4)
    found = greedy(decoder, decoder.memory, length=[3, 0, 1, 2])
    assert [each.tokens for each in found] == [[4, 4, 4], [], [4], [4, 4]]
    assert decoder.rows == decoder.sources == [3, 2, 1]


def test_an_empty_batch_has_no_targets():
    decoder = random_table(0, 8)
    assert greedy(decoder, decoder.memory, length=3) == []


def test_pad_and_bos_never_come_out_even_if_the_model_likes_them_best():
    decoder = random_table(50, 8)
    decoder.memory[..., :2] += 10
    for found in greedy(decoder, decoder.memory, length=9):
        assert not {0, 1} & set(found.tokens)


def test_unknown_tokens_come_out_unless_forbidden():
    decoder = table({1: {UNK: 0.6, 4: 0.4}})
    assert greedy(decoder, decoder.memory, length=9)[0].tokens == [UNK, EOS]
    assert greedy(decoder, decoder.memory, length=9, unknown=False)[0].tokens == [4, EOS]


def test_having_no_way_on_is_an_error():
    decoder = table({1: {4: 1.0}, 4: {UNK: 1.0}})
    with pytest.raises(ValueError, match="decoding needs a possible token at step 2"):
        greedy(decoder, decoder.memory, length=9, unknown=False)


def test_nan_is_an_error():
    decoder = Table(torch.full((1, 8, 8), float("nan")))
    with pytest.raises(ValueError, match="got NaN"):
        greedy(decoder, decoder.memory, length=9)


@pytest.mark.parametrize("kind", DECODERS)
def test_weights_have_a_row_for_each_token_and_a_column_for_each_real_key(kind):
    decoder, encoded = kind(), sources(6)
    memory = decoder.remember(encoded)
    for each, source in zip(greedy(decoder, memory, length=7, weights=True), apart(encoded), strict=True):
        for name, weights in each.weights.items():
            keys = len(each.tokens) if name.endswith("self") else len(source)
            assert weights.shape == (2, len(each.tokens), keys)
            torch.testing.assert_close(weights.sum(-1), torch.ones(2, len(each.tokens)))


@pytest.mark.parametrize("kind", DECODERS)
def test_weights_are_those_of_the_taught_decoder(kind):
    decoder, encoded = kind(), sources(5)
    memory = decoder.remember(encoded)
    for sentence, found in enumerate(greedy(decoder, memory, length=7, weights=True)):
        taught = decoder(torch.tensor([[1, *found.tokens[:-1]]]), select(memory, torch.tensor([sentence])), weights=True)
        for name, weights in found.weights.items():
            torch.testing.assert_close(weights, taught.attended[name].weights[0][..., : weights.shape[-1]])


def needles_in_batches(kind: type, batches: int, needles: int) -> None:
    """N4: a sentence finds the same target alone and in batches of 2 to 64, wherever it stands."""
    generator = torch.Generator().manual_seed(batches)
    decoder, hay = kind(), apart(sources(256, seed=1))
    for _ in range(batches):
        size = int(torch.randint(2, 65, (), generator=generator))
        batch = [hay[each] for each in torch.randint(0, len(hay), (size,), generator=generator).tolist()]
        found = greedy(decoder, decoder.remember(together(batch)), length=8, weights=True)
        for place in torch.randint(0, size, (needles,), generator=generator).tolist():
            (alone,) = greedy(decoder, decoder.remember(together([batch[place]])), length=8, weights=True)
            assert found[place].tokens == alone.tokens
            assert found[place].score == pytest.approx(alone.score, abs=1e-4)
            for name, weights in alone.weights.items():
                torch.testing.assert_close(found[place].weights[name], weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_sentence_does_not_see_the_batch_it_is_in(kind):
    needles_in_batches(kind, 5, needles=4)


@pytest.mark.soak
@pytest.mark.parametrize("kind", DECODERS)
def test_a_sentence_does_not_see_any_of_many_batches(kind):
    needles_in_batches(kind, 200, needles=1)


def prefixes(kind: type, count: int) -> None:
    """N5: on random prefixes, step by step gives the logits of the whole prefix at once, and so the same best tokens."""
    decoder = kind(vocabulary=30)
    memory = decoder.remember(sources(count))
    tokens = torch.randint(3, 30, (count, 10))
    tokens[:, 0] = 1
    whole, state = decoder(tokens, memory).output, decoder.start(memory)
    for time in range(tokens.shape[1]):
        step = decoder.step(tokens[:, time], memory, state)
        state = step.state
        torch.testing.assert_close(step.output, whole[:, time], rtol=0, atol=1e-5)
        assert step.output.argmax(-1).equal(whole[:, time].argmax(-1))


@pytest.mark.parametrize("kind", DECODERS)
def test_step_by_step_equals_all_at_once(kind):
    prefixes(kind, 25)


@pytest.mark.soak
@pytest.mark.parametrize("kind", DECODERS)
def test_step_by_step_equals_all_at_once_on_many_prefixes(kind):
    prefixes(kind, 500)


@pytest.mark.parametrize("kind", DECODERS)
def test_greedy_search_is_what_the_taught_decoder_would_have_said(kind):
    decoder = kind()
    memory = decoder.remember(sources(8))
    for sentence, found in enumerate(greedy(decoder, memory, length=9)):
        taught = decoder(torch.tensor([[1, *found.tokens[:-1]]]), select(memory, torch.tensor([sentence]))).output[0]
        taught[:, :2] = float("-inf")
        assert taught.argmax(-1).tolist() == found.tokens
        assert found.logprobs == pytest.approx(by_hand(decoder, memory, sentence, found.tokens), abs=1e-5)
