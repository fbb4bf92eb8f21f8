import numpy as np
import pytest

BAR = np.stack((np.linspace(0, 400, 41), np.full(41, 50.0)), axis=1)
SYMBOL = np.array([[0.0, 0.0], [10.0, 28.0], [20.0, 0.0]])


@pytest.fixture
def written(script):
    return script("rewritten")


def chance(seed=0):
    return np.random.default_rng(seed)


def test_the_same_chance_writes_the_same(written):
    first, second = (written.rewritten([BAR, SYMBOL], chance(3)) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert not np.array_equal(first[0], written.rewritten([BAR, SYMBOL], chance(4))[0])


def test_every_stroke_keeps_its_points_and_their_order(written):
    again = written.rewritten([BAR, SYMBOL], chance())
    assert [each.shape for each in again] == [BAR.shape, SYMBOL.shape]
    assert (np.diff(again[0][:, 0]) > 0).all()


def test_a_long_bar_tilts_less_than_a_symbol(written):
    ends = [written.alone(BAR, chance(seed)) for seed in range(200)]
    rise = np.array([each[-1, 1] - each[0, 1] for each in ends])
    assert 0.5 < rise.std() < 4  # 400 pixels long: a tilt of 3 degrees would be 21
    tilted = np.array([written.alone(SYMBOL, chance(seed))[[0, 2], 1] for seed in range(200)])
    slope = np.degrees(np.arctan((tilted[:, 1] - tilted[:, 0]) / 20))
    assert 2 < slope.std() < 4


def test_a_stroke_goes_aside_by_about_a_pixel(written):
    middles = np.array(
        [(each.min(0) + each.max(0)) / 2 for each in (written.alone(BAR, chance(seed)) for seed in range(300))]
    )
    assert np.allclose((middles - [200, 50]).std(0), written.ASIDE, rtol=0.3)


def test_waves_bend_the_page_by_what_they_say_and_near_places_alike(written):
    grid = np.stack(np.meshgrid(np.arange(0, 500, 7.0), np.arange(0, 200, 7.0)), axis=-1).reshape(-1, 2)
    moved = np.array([written.Waves(chance(seed))(grid) - grid for seed in range(50)])
    assert np.allclose(moved.std((0, 1)), written.BEND, rtol=0.25)
    beside = grid + np.array([1.0, 0.0])
    near = np.array([written.Waves(chance(seed))(beside) - beside for seed in range(50)])
    assert np.abs(near - moved).mean() < 0.3


def test_a_page_turns_slants_and_scales_a_little(written):
    matrices = np.array([written.page(chance(seed)) for seed in range(300)])
    assert np.allclose(matrices.mean(0), np.eye(2), atol=0.05)
    assert 1 / 1.66 < np.linalg.det(matrices).min() < 0.8
    assert 1.3 < np.linalg.det(matrices).max() < 1.66
