import math

import pytest

from regard.config import Train
from regard.training.schedules import Plateau, compute_learning_rate


def test_constant_warms_up_in_a_straight_line():
    train = Train(learning_rate=0.8, warmup_steps=4)
    assert [compute_learning_rate(train, step) for step in range(6)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8])
    assert compute_learning_rate(Train(learning_rate=0.8), 0) == 0.8


def test_noam_is_equation_3_of_the_paper():
    train = Train(learning_rate=1.0, schedule="noam", warmup_steps=4000)
    assert compute_learning_rate(train, 3999, size=512) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert compute_learning_rate(train, 0, size=512) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert compute_learning_rate(train, 15999, size=512) == pytest.approx(compute_learning_rate(train, 3999, size=512) / 2)


def test_noam_says_what_it_needs():
    with pytest.raises(ValueError, match=r"noam schedule needs train.warmup_steps of 1 or more, got 0; the paper has 4000"):
        compute_learning_rate(Train(schedule="noam"), 0, 512)
    with pytest.raises(ValueError, match=r"needs the size of the model, and this config has no model.hidden_size"):
        compute_learning_rate(Train(schedule="noam", warmup_steps=1), 0)


def test_cosine_falls_from_the_rate_to_nothing():
    train = Train(learning_rate=2.0, schedule="cosine", warmup_steps=2, max_steps=6)
    assert [compute_learning_rate(train, step) for step in (0, 1, 2, 4, 6, 9)] == pytest.approx(
        [1.0, 2.0, 2.0, 1.0, 0.0, 0.0]
    )


def test_inverse_sqrt_meets_its_warm_up_at_the_rate():
    train = Train(learning_rate=0.5, schedule="inverse_sqrt", warmup_steps=4)
    assert [compute_learning_rate(train, step) for step in (0, 3, 15)] == pytest.approx([0.125, 0.5, 0.25])
    assert compute_learning_rate(Train(learning_rate=0.5, schedule="inverse_sqrt"), 3) == pytest.approx(0.25)


def test_plateau_halves_after_two_evaluations_without_a_better_one():
    plateau = Plateau()
    factors = []
    for value in (3.0, 2.0, 2.5, 2.0, 1.0, math.inf, math.nan, 5.0, 5.0):
        plateau.see(value)
        factors.append(plateau.factor)
    assert factors == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]
    assert plateau.best == 1.0


def test_plateau_goes_on_from_its_state():
    plateau, other = Plateau(), Plateau()
    for value in (3.0, 4.0, 5.0, 6.0):
        plateau.see(value)
    other.restore(plateau.state())
    assert other == plateau
    assert other.stale == 1
