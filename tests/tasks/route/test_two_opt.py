from itertools import permutations

import torch
from torch.testing import assert_close

from regard.tasks.route.model import measure_routes
from regard.tasks.route.two_opt import solve_nearest, solve_two_opt


def test_two_opt_with_restarts_finds_the_shortest_tour_of_seven_points():
    torch.manual_seed(0)
    points = torch.rand(4, 7, 2)
    tours = torch.tensor([(0, *order) for order in permutations(range(1, 7))])
    shortest = measure_routes(points, tours.expand(4, -1, -1)).amin(1)
    assert_close(solve_two_opt(points), shortest)
    assert (solve_nearest(points) >= shortest - 1e-6).all()


def test_one_tour_is_never_shorter_than_the_best_of_several():
    points = torch.rand(8, 20, 2, generator=torch.Generator().manual_seed(1))
    assert (solve_two_opt(points, restarts=1) >= solve_two_opt(points, restarts=10) - 1e-6).all()


def test_the_nearest_neighbour_is_the_one_worked_out_by_hand():
    assert_close(
        solve_nearest(torch.tensor([[[0.0, 0.0], [3.0, 0.0], [1.0, 0.0], [0.0, 2.0]]])), torch.tensor([3 + 13**0.5 + 2])
    )
