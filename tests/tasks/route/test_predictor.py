"""Routes by policies that were not trained."""

import pytest
import torch
from torch.testing import assert_close

from regard import tasks
from regard.errors import ConfigError, DataError
from regard.tasks.route import predictor as module
from regard.tasks.route.codec import PointCodec
from regard.tasks.route.config import RouteModel
from regard.tasks.route.experiment import generate_instances
from regard.tasks.route.model import AttentionModel, Routes
from regard.tasks.route.predictor import RoutePredictor, join_routes, measure_mean, rotate, select_shortest
from regard.tasks.route.records import Instance
from regard.tasks.route.task import Config

SQUARE = Instance(((10.0, 10.0), (10.0, 30.0), (30.0, 30.0), (30.0, 10.0)))


@pytest.fixture
def predictor():
    config = Config(model=RouteModel(hidden_size=8, layers=1, heads=2, feedforward_size=8))
    model = AttentionModel(8, layers=1, heads=2, inner=8).eval()
    return RoutePredictor(tasks.bind("route"), config, PointCodec(), model)


def build_routes(lengths, start=0):
    """Routes of which each is named by its length, rounded down."""
    length = torch.tensor(lengths)
    order = (length[..., None].long() + torch.arange(3) + start) % 3
    pointer = length[..., None, None].expand(*length.shape, 2, 3)
    return Routes(order, length[..., None].expand(*length.shape, 2), length, pointer)


def test_the_shortest_route_of_each_instance_is_taken_with_all_that_belongs_to_it():
    best = select_shortest(build_routes([[3.0, 1.0, 2.0], [5.0, 7.0, 9.0]]))
    assert best.length.tolist() == [[1.0], [5.0]]
    assert best.order.tolist() == [[[1, 2, 0]], [[2, 0, 1]]]
    assert best.log_probabilities.tolist() == [[[1.0, 1.0]], [[5.0, 5.0]]]
    assert best.pointer[:, 0, 0, 0].tolist() == [1.0, 5.0]
    assert select_shortest(build_routes([[2.0]])._replace(pointer=None)).pointer is None


def test_routes_are_joined_side_by_side():
    both = join_routes(build_routes([[3.0], [5.0]]), build_routes([[1.0], [9.0]]))
    assert both.length.tolist() == [[3.0, 1.0], [5.0, 9.0]]
    assert both.pointer.shape == (2, 2, 2, 3)
    assert join_routes(build_routes([[3.0]])._replace(pointer=None), build_routes([[1.0]])).pointer is None


def test_a_closed_route_begins_with_its_first_point():
    assert rotate([2, 3, 0, 1]) == [0, 1, 2, 3]
    assert rotate([0, 2, 1]) == [0, 2, 1]


def test_a_mean_is_between_the_ends_of_its_interval():
    mean = measure_mean(torch.tensor([1.0, 2.0, 6.0]), "length")
    assert mean.value == 3.0
    assert 1.0 <= mean.low < 3.0 < mean.high <= 6.0
    assert mean.signature == "length"


def test_a_route_is_described_in_the_units_of_its_points(predictor):
    [example] = predictor.codec.encode_all([SQUARE]).examples
    order, pointer = torch.tensor([[[2, 3, 0, 1]]]), torch.eye(4)[[3, 0, 1]][None, None]
    routes = Routes(order, torch.tensor([[[-0.5, -0.25, 0.0]]]), torch.tensor([[4.0]]), pointer)
    answer = predictor.describe(example, 0, routes, align=True)
    assert answer.text == "0 1 2 3\t80"
    assert answer.fields == {"route": [0, 1, 2, 3], "length": 80.0}
    assert answer.score == -0.75
    assert answer.target == ["3", "0", "1"]
    assert answer.weights.argmax(-1).tolist() == [3, 0, 1]
    assert predictor.describe(example, 0, routes, align=False).weights is None


def test_more_samples_are_never_longer_and_come_in_turns(predictor, monkeypatch):
    examples = predictor.codec.encode_all(generate_instances(3, 6, 0)).examples
    few, many = (predictor.measure_lengths(examples, samples=samples) for samples in (6, 60))
    assert (many <= few + 1e-6).all()
    assert_close(predictor.measure_lengths(examples, samples=6), few)
    monkeypatch.setattr(module, "MOST", 4)
    turns = predictor.measure_lengths(examples, samples=10)
    assert (turns >= predictor.solve(examples).two_opt - 1e-5).all()


def test_greedy_routes_from_all_points_are_no_longer_than_from_one(predictor):
    examples = predictor.codec.encode_all(generate_instances(4, 5, 1)).examples
    one, several = (predictor.measure_lengths(examples, samples=None, starts=starts) for starts in (1, None))
    assert (several <= one + 1e-6).all()
    figures = predictor.figures(examples)
    assert figures["length"] == pytest.approx(float(one.mean()))
    solved = predictor.solve(examples)
    assert figures["gap"] == pytest.approx(float(100 * (one / solved.two_opt - 1).mean()))
    assert figures["nearest.length"] >= figures["two_opt.length"]


def test_sampled_routes_are_evaluated_where_they_are_asked_for(predictor):
    examples = predictor.codec.encode_all(generate_instances(2, 5, 1)).examples
    predictor.set_samples("7")
    metrics = predictor.evaluate_examples(examples)
    assert metrics["gap_sampled"].signature.startswith("the shortest of 7 sampled routes above 2-opt")
    assert metrics["gap_starts"].value <= metrics["gap"].value + 1e-6


def test_bad_options_and_no_instances_are_named(predictor):
    for value in ("0", "-1", "x", "65537", ""):
        with pytest.raises(ConfigError, match=f"--samples needs a number of routes from 1 to 65,536, got '{value}'"):
            predictor.set_samples(value)
    with pytest.raises(DataError, match="routes are evaluated on one instance or more, got none"):
        predictor.evaluate_examples([])
    with pytest.raises(ConfigError, match="source is no column of route, whose files have points alone"):
        predictor.read_table("x.csv", source="1")
