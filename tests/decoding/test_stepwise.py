import torch

from regard.data.special_tokens import EOS
from regard.decoding.stepwise import decode_stepwise

from .decoders import Recurrent, sources, table


def test_the_score_is_what_the_model_thinks_of_what_was_chosen():
    decoder = table({1: {4: 0.75, 5: 0.25}, 5: {EOS: 0.5, 4: 0.5}})
    choose = iter([5, EOS])
    (found,) = decode_stepwise(
        decoder, decoder.memory, lambda logs: torch.tensor([next(choose)]), length=9, weights=False, unknown=True
    )
    assert found.tokens == [5, EOS]
    torch.testing.assert_close(torch.tensor(found.logprobs).exp(), torch.tensor([0.25, 0.5]))
    assert found.score == sum(found.logprobs)
    assert found.normalised == found.score / 2


def test_each_sentence_leaves_when_it_ends_and_the_order_stays():
    decoder = Recurrent()
    memory = decoder.remember(sources(4))
    calls = []

    def choose(logs):
        """Sentence s of 4 ends after s + 1 tokens, all of them 4 + s."""
        calls.append(len(logs))
        return torch.tensor([EOS if len(calls) == sentence + 1 else 4 + sentence for sentence in range(4)][-len(logs) :])

    found = decode_stepwise(decoder, memory, choose, length=9, weights=False, unknown=True)
    assert [each.tokens for each in found] == [[2], [5, 2], [6, 6, 2], [7, 7, 7, 2]]
    assert decoder.rows == decoder.sources == [4, 3, 2, 1]


def test_nothing_is_kept_for_gradients():
    decoder = Recurrent()
    found = decode_stepwise(
        decoder, decoder.remember(sources(2)), lambda logs: logs.argmax(-1), length=3, weights=True, unknown=True
    )
    assert not found[0].weights["attention"].requires_grad
