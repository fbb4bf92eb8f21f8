import pytest
import torch
from torch.testing import assert_close

from regard.losses.types import Progress
from regard.tasks.route.batch import GeneratedPoints, RouteBatch, stack_points
from regard.tasks.route.config import RouteTrain
from regard.tasks.route.loss import RouteLoss
from regard.tasks.route.model import AttentionModel, measure_routes, spread_starts


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return AttentionModel(16, layers=1, heads=2, inner=16)


@pytest.fixture(scope="module")
def points():
    return GeneratedPoints(3, 6, seed=0).batch(0).source


@pytest.mark.parametrize("sample", [False, True])
def test_a_route_visits_every_point_once_from_its_start(model, points, sample):
    starts = spread_starts(3, 6, 4, torch.device("cpu"))
    routes = model(points, starts, sample=sample, weights=True)
    assert routes.order.sort(-1).values.tolist() == [[list(range(6))] * 4] * 3
    assert routes.order[:, :, 0].tolist() == starts.tolist()
    assert_close(routes.length, measure_routes(points.data, routes.order))
    assert_close(routes.pointer.sum(-1), torch.ones(3, 4, 5))
    chosen = routes.pointer.gather(3, routes.order[:, :, 1:, None])[..., 0]
    assert_close(routes.log_probabilities, chosen.log(), atol=1e-5, rtol=1e-5)


def test_greedy_routes_do_not_depend_on_the_numbers_of_points(model, points):
    turned = stack_points(points.data.flip(1))
    there = model.eval()(points, torch.zeros(3, 1, dtype=torch.long))
    back = model(turned, torch.full((3, 1), 5))
    assert_close(back.length, there.length)


def test_a_square_has_length_four():
    square = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]])
    assert measure_routes(square, torch.arange(4)[None, None]).item() == 4.0


@pytest.mark.parametrize("baseline", ["starts", "greedy", "none"])
def test_the_policy_gradient_makes_the_shorter_route_likelier(model, baseline):
    batch = GeneratedPoints(8, 5, seed=1).batch(0)
    loss = RouteLoss(RouteTrain(baseline=baseline, starts=3))
    torch.manual_seed(0)
    result = loss(model, batch, Progress(0, 1))
    assert_close(result.total, result.parts["length"])  # the policy gradient adds nothing to the value
    result.total.backward()
    assert any(parameter.grad.abs().sum() > 0 for parameter in model.parameters() if parameter.grad is not None)
    model.zero_grad()


def test_a_training_shortens_routes():
    torch.manual_seed(0)
    model, loss = AttentionModel(16, layers=1, heads=2, inner=16), RouteLoss(RouteTrain(starts=6))
    optimiser, batches = torch.optim.Adam(model.parameters(), 5e-3), GeneratedPoints(32, 6, seed=0)
    test: RouteBatch = GeneratedPoints(100, 6, seed=9).batch(0)
    first = torch.zeros(100, 1, dtype=torch.long)
    before = model(test.source, first).length.mean()
    for step in range(30):
        optimiser.zero_grad()
        result = loss(model, batches.batch(step), Progress(0, 1))
        (result.total / result.tokens).backward()
        optimiser.step()
    assert model(test.source, first).length.mean() < 0.98 * before
