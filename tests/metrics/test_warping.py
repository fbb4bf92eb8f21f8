import pytest
import torch

from regard.metrics.warping import warp, warp_distance


def test_a_small_table_can_be_worked_by_hand():
    path = warp(torch.tensor([[1.0, 5.0, 5.0], [5.0, 1.0, 1.0], [5.0, 5.0, 2.0]]))
    # 1 at (0, 0), 1 at (1, 1), then 2 at (2, 2); by way of (1, 2) it would be 1 more
    assert (path.rows.tolist(), path.columns.tolist(), path.cost) == ([0, 1, 2], [0, 1, 2], 4.0)


def cheapest(costs, i, j):
    """The recursion as it is defined."""
    if i == 0 and j == 0:
        return costs[0][0]
    before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
    return costs[i][j] + min(cheapest(costs, *place) for place in before if min(place) >= 0)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (5, 1), (4, 5), (6, 3)])
def test_it_is_the_recursion(rows, columns):
    costs = torch.rand(rows, columns, dtype=torch.float64)
    path = warp(costs)
    assert path.cost == pytest.approx(cheapest(costs.tolist(), rows - 1, columns - 1))
    assert path.cost == pytest.approx(costs[path.rows, path.columns].sum().item())
    steps = torch.tensor([path.rows.tolist(), path.columns.tolist()]).diff()
    assert ((steps == 0) | (steps == 1)).all()
    assert steps.sum(0).ge(1).all()


def test_a_sequence_said_slowly_is_as_near_as_itself():
    sound = torch.randn(6, 3)
    assert warp_distance(sound, sound.repeat_interleave(2, 0)).cost == pytest.approx(0.0, abs=1e-9)


def test_nothing_cannot_be_warped():
    with pytest.raises(ValueError, match="one place or more on both sides, got 0 and 3"):
        warp(torch.zeros(0, 3))
