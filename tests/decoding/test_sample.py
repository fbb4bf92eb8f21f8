import math

import pytest
import torch

from regard.data.batch import pad
from regard.data.special_tokens import EOS
from regard.decoding import greedy, rate, sample
from regard.decoding.sample import Sampler

from .decoders import Recurrent, random_table, sources, table

FOUR = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()


def shares(**settings) -> list[float]:
    return [round(each, 4) for each in Sampler(**settings).shares(FOUR)[0].tolist()]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_untouched_each_token_is_drawn_as_often_as_it_is_likely():
    assert shares() == [0.5, 0.25, 0.15, 0.1]


def test_temperature_is_a_power():
    squares = [0.25, 0.0625, 0.0225, 0.01]
    assert shares(temperature=0.5) == [round(each / sum(squares), 4) for each in squares]


def test_no_temperature_is_too_cold_or_too_hot():
    assert shares(temperature=1e-60) == [1, 0, 0, 0]
    assert shares(temperature=1e30) == [0.25] * 4


def test_top_k_leaves_the_k_most_likely():
    assert shares(top_k=2) == [0.6667, 0.3333, 0, 0]
    assert shares(top_k=99) == [0.5, 0.25, 0.15, 0.1]


def test_of_equally_likely_tokens_top_k_leaves_the_lowest():
    assert Sampler(top_k=1).shares(torch.zeros(1, 3)).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(("p", "count"), [(0.0, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.91, 4), (1.0, 4)])
def test_top_p_leaves_the_fewest_that_hold_p(p, count):
    assert sum(each > 0 for each in shares(top_p=p)) == count


def test_top_p_looks_at_what_temperature_and_top_k_left():
    # of the first two, the first holds two thirds
    assert shares(top_k=2, top_p=0.6) == [1, 0, 0, 0]


def test_what_is_impossible_is_never_drawn():
    logs = torch.tensor([[-math.inf, 0.0, -math.inf, -5.0]]).expand(1000, 4)
    assert set(Sampler(generator=seeded(), temperature=9.0)(logs).tolist()) == {1, 3}


def test_temperature_nought_is_greedy():
    decoder = Recurrent()
    memory = decoder.remember(sources(5))
    assert sample(decoder, memory, length=9, temperature=0.0) == greedy(decoder, memory, length=9)


def test_the_same_generator_draws_the_same():
    decoder = Recurrent(sharpness=1.0)
    memory = decoder.remember(sources(5))
    one, same, other = (sample(decoder, memory, length=9, generator=seeded(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_without_a_generator_the_global_seed_counts():
    decoder = random_table(5, 9)
    torch.manual_seed(3)
    one = sample(decoder, decoder.memory, length=9)
    torch.manual_seed(3)
    assert sample(decoder, decoder.memory, length=9) == one


def test_draws_come_as_often_as_they_should():
    decoder = table({1: {4: 0.7, 5: 0.3}, 5: {EOS: 0.5, 5: 0.5}}, sources=4000)
    found = sample(decoder, decoder.memory, length=2, generator=seeded())
    counts = {tokens: sum(each.tokens == list(tokens) for each in found) / 4000 for tokens in [(4, EOS), (5, EOS), (5, 5)]}
    assert counts == {
        (4, EOS): pytest.approx(0.7, abs=0.03),
        (5, EOS): pytest.approx(0.15, abs=0.03),
        (5, 5): pytest.approx(0.15, abs=0.03),
    }
    assert all(each.finished == (each.tokens[-1] == EOS) for each in found)


def test_the_score_is_the_models_own_whatever_the_temperature():
    decoder = Recurrent(sharpness=1.0)
    memory = decoder.remember(sources(6))
    found = sample(decoder, memory, length=9, temperature=2.0, top_k=5, top_p=0.9, generator=seeded())
    rated = rate(decoder, memory, pad([each.tokens for each in found]))
    assert [each.score for each in found] == pytest.approx(rated.scores.tolist(), abs=1e-5)


def test_weights_come_when_asked_for():
    decoder = Recurrent()
    found = sample(decoder, decoder.remember(sources(2)), length=4, generator=seeded(), weights=True)
    assert [each.weights["attention"].shape[1] for each in found] == [len(each.tokens) for each in found]


def test_unknown_tokens_can_be_forbidden():
    decoder = random_table(200, 6)
    assert any(3 in each.tokens for each in sample(decoder, decoder.memory, length=5, generator=seeded()))
    assert not any(3 in each.tokens for each in sample(decoder, decoder.memory, length=5, generator=seeded(), unknown=False))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature needs to be 0 or more and finite, got -1.0; 0 is greedy search"),
        ({"temperature": math.inf}, "temperature needs to be 0 or more and finite, got inf"),
        ({"temperature": math.nan}, "temperature needs to be 0 or more and finite, got nan"),
        ({"top_k": 0}, "top_k needs to be 1 or more, got 0; None keeps every token"),
        ({"top_p": 1.5}, "top_p needs to be from 0 to 1, got 1.5; 1 keeps every token"),
        ({"top_p": -0.1}, "top_p needs to be from 0 to 1, got -0.1"),
    ],
)
def test_bad_settings_are_errors_before_anything_is_decoded(settings, message):
    decoder = random_table(1, 8)
    with pytest.raises(ValueError, match=message):
        sample(decoder, decoder.memory, length=3, **settings)
    assert decoder.rows == []
