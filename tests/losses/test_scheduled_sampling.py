import math

import pytest

from regard.config import Train
from regard.losses.scheduled_sampling import sampling_probability, solve_half_way, teacher_forcing_share

KINDS = ("constant", "linear", "exponential", "inverse_sigmoid")


def train(kind, most=1.0, steps=1000):
    return Train(scheduled_sampling=kind, scheduled_sampling_max=most, scheduled_sampling_steps=steps)


def test_without_a_schedule_the_target_is_always_fed():
    assert sampling_probability(train("none"), 500) == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [1.0, 0.25])
@pytest.mark.parametrize("steps", [1, 2, 7, 60])
def test_every_schedule_rises_to_its_most_and_stays_there(kind, most, steps):
    shares = [sampling_probability(train(kind, most, steps), step) for step in range(2 * steps + 1)]
    assert shares == sorted(shares)
    assert shares[0] == (most if kind == "constant" else 0.0)
    assert set(shares[steps:]) == {most}


def test_schedules_have_their_shape():
    assert sampling_probability(train("linear"), 250) == pytest.approx(0.25)
    assert sampling_probability(train("exponential"), 500) == pytest.approx((1 - 0.1) / (1 - 0.01))
    assert sampling_probability(train("inverse_sigmoid"), 500) == pytest.approx(0.5, abs=0.01)
    assert sampling_probability(train("inverse_sigmoid"), 100) < 0.03


def test_the_inverse_sigmoid_is_the_paper_s():
    k = solve_half_way(500.0)
    assert k * math.log(k) == pytest.approx(500)
    assert teacher_forcing_share("inverse_sigmoid", 500, 1000) == pytest.approx(0.5)
    assert teacher_forcing_share("inverse_sigmoid", 0, 1000) == pytest.approx(k / (k + 1))


def test_a_share_above_one_is_refused():
    with pytest.raises(ValueError, match=r"train.scheduled_sampling_max needs to be from 0 to 1, got 1.5"):
        sampling_probability(train("constant", 1.5), 0)
