"""Routes through points: greedy or sampled, and their gap to a solver."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.axis import Axis
from regard.errors import ConfigError, DataError
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.metrics.text import Measurement, Metrics, Rows, bootstrap
from regard.tasks.route.batch import RouteBatch, RouteExample
from regard.tasks.route.model import Routes, spread_starts
from regard.tasks.route.records import Instance
from regard.tasks.route.two_opt import RESTARTS, solve_nearest, solve_two_opt
from regard.viewer.trace import Choice

MOST = 1024
"""Most routes of an instance at once."""
SEED = 0
"""Seed of sampled routes."""


class Solved(NamedTuple):
    """Lengths of the routes of two solvers, in the unit square."""

    two_opt: Float[Tensor, " instances"]
    nearest: Float[Tensor, " instances"]


class RoutePredictor(ForwardPredictor):
    """An input is the path of a CSV file of points; the answer has the numbers of its points, counted from 0, in order."""

    samples: int | None = None
    """Number of sampled routes of each instance; None: a greedy route from every point, of which the shortest counts."""
    solved: Solved | None = None
    """Routes of the solvers for instances that are evaluated again and again."""

    def set_samples(self, value: str) -> None:
        """Set the number of sampled routes."""
        if not value.isdecimal() or not 1 <= int(value) <= 65_536:
            raise ConfigError(f"--samples needs a number of routes from 1 to 65,536, got {value!r}")
        self.samples = int(value)

    def parse(self, text: str, number: int) -> Instance:
        """Points of a file."""
        record: Instance = self.task.prepare(self.codec.read(text, number))
        return record

    def strip_target(self, record: Instance) -> Instance:
        """The record itself, which has no target."""
        return record

    def read_table(self, path: str | os.PathLike[str], **columns: str) -> list[Instance]:
        """Instances of a file, which has no columns to name."""
        if columns:
            raise ConfigError(f"{min(columns)} is no column of {self.name}, whose files have points alone")
        return [self.task.prepare(record) for record in self.task.read(self.config.data, os.fspath(path))]

    def forward(self, batch: RouteBatch, weights: bool = False) -> Routes:
        """The shortest route of each instance: of the samples, or of the greedy ones from every point."""
        return select_shortest(self.routes(batch, self.samples, weights))

    def routes(self, batch: RouteBatch, samples: int | None, weights: bool = False, starts: int | None = None) -> Routes:
        """Routes of each instance: sampled from starts in turn, or greedy from `starts` of its points."""
        size, count, _ = batch.source.data.shape
        device = batch.source.data.device
        if samples is None:
            routes: Routes = self.model(batch.source, spread_starts(size, count, starts or count, device), weights=weights)
            return routes
        generator = torch.Generator(device).manual_seed(SEED)
        best: Routes | None = None
        for first in range(0, samples, MOST):
            turn = torch.arange(first, min(samples, first + MOST), device=device) % count
            routes = self.model(batch.source, turn.expand(size, -1), sample=True, generator=generator, weights=weights)
            routes = select_shortest(routes)
            best = routes if best is None else select_shortest(join_routes(best, routes))
        assert best is not None
        return best

    def scores(self, output: Routes) -> Float[Tensor, "batch *scores"]:
        """Log-probabilities of the choices, which are finite."""
        return output.log_probabilities

    def decode(self, examples: Sequence[RouteExample], output: Routes, best: int, align: bool) -> list[list[Prediction]]:
        """The route of each instance, which begins with its first point."""
        if best != 1:
            raise ConfigError("an instance has one route; leave --nbest out")
        return [[self.describe(example, row, output, align)] for row, example in enumerate(examples)]

    def describe(self, example: RouteExample, row: int, output: Routes, align: bool) -> Prediction:
        """Route of one instance, with its length in the units of its points."""
        order = output.order[row, 0].tolist()
        points = np.array(example.record.points)[order]
        length = float(np.linalg.norm(points - np.roll(points, -1, axis=0), axis=1).sum())
        fields: Mapping[str, Any] = {"route": rotate(order), "length": length}
        weights = None if output.pointer is None or not align else output.pointer[row, 0].float().cpu()
        target = self.codec.target_pieces(order[1:] if align else rotate(order))
        score = float(output.log_probabilities[row, 0].sum())
        text = f"{self.codec.decode(rotate(order))}\t{length:.6g}"
        return Prediction(text, score, self.codec.pieces(example), target, weights, fields=fields)

    def solve(self, examples: Sequence[RouteExample]) -> Solved:
        """Lengths of the solvers' routes."""
        lengths = torch.zeros(2, len(examples))
        for indices, batch in self.loader(examples).in_order():
            lengths[:, indices] = torch.stack((solve_two_opt(batch.source.data), solve_nearest(batch.source.data)))
        return Solved(*lengths.unbind(0))

    def measure_lengths(self, examples: Sequence[RouteExample], **options: Any) -> Float[Tensor, " instances"]:
        """Lengths of the shortest of the routes of each instance."""
        lengths = torch.zeros(len(examples))
        device = next(self.model.parameters()).device
        for indices, batch in self.loader(examples).in_order():
            with torch.no_grad():
                lengths[indices] = self.routes(batch.to(device), **options).length.amin(1).float().cpu()
        return lengths

    def figures(self, examples: Sequence[RouteExample]) -> dict[str, float]:
        """Mean length of greedy routes from one start, and their gap to 2-opt with restarts, for a training."""
        solved = self.solved or self.solve(examples)
        length = self.measure_lengths(examples, samples=None, starts=1)
        return {
            "length": float(length.mean()),
            "gap": float(100 * (length / solved.two_opt - 1).mean()),
            "two_opt.length": float(solved.two_opt.mean()),
            "nearest.length": float(solved.nearest.mean()),
        }

    def evaluate_examples(self, examples: Sequence[RouteExample], *, beam: int | None = None) -> Metrics:
        """Lengths in the unit square, and gaps to 2-opt with restarts: greedy from one start and from all, and sampled."""
        if not examples:
            raise DataError("routes are evaluated on one instance or more, got none")
        solved = self.solved or self.solve(examples)
        solver = f"2-opt with {RESTARTS} restarts"
        greedy = self.measure_lengths(examples, samples=None, starts=1)
        lengths = {"length": greedy, "two_opt.length": solved.two_opt, "nearest.length": solved.nearest}
        said = {"length": "greedy route from one start, in the unit square", "two_opt.length": solver}
        metrics: Metrics = {
            name: measure_mean(values, said.get(name, "nearest neighbour")) for name, values in lengths.items()
        }
        gaps = {"gap": (greedy, "one greedy route")}
        gaps["gap_starts"] = self.measure_lengths(examples, samples=None), "the shortest greedy route from all points"
        if self.samples is not None:
            sampled = self.measure_lengths(examples, samples=self.samples)
            gaps["gap_sampled"] = sampled, f"the shortest of {self.samples} sampled routes"
        return metrics | {
            name: measure_mean(100 * (values / solved.two_opt - 1), f"{text} above {solver}, in per cent")
            for name, (values, text) in gaps.items()
        }

    def trace_parts(self, example: RouteExample, output: Routes) -> ForwardTrace:
        """The pointer over the points, at each step of the route."""
        assert output.pointer is not None
        order = output.order[0, 0].tolist()
        axes: dict[str, Axis] = {"route": self.codec.target_axis(order[1:]), "points": self.codec.axis(example)}
        chances = output.log_probabilities[0, 0].tolist()
        choices = tuple(
            Choice(step, str(point), chance) for step, (point, chance) in enumerate(zip(order[1:], chances, strict=True))
        )
        return ForwardTrace(axes, {"pointer": AxisWeights("route", "points", output.pointer[0])}, choices)


def select_shortest(routes: Routes) -> Routes:
    """The shortest route of each instance."""
    best = routes.length.argmin(1, keepdim=True)

    def take(tensor: Tensor) -> Tensor:
        index = best.view(-1, 1, *[1] * (tensor.dim() - 2)).expand(-1, 1, *tensor.shape[2:])
        return tensor.gather(1, index)

    pointer = None if routes.pointer is None else take(routes.pointer)
    return Routes(take(routes.order), take(routes.log_probabilities), take(routes.length), pointer)


def join_routes(first: Routes, second: Routes) -> Routes:
    """Routes of both."""
    pairs = zip(first, second, strict=True)
    return Routes(*(None if one is None or other is None else torch.cat((one, other), 1) for one, other in pairs))  # type: ignore[arg-type]


def rotate(order: Sequence[int]) -> list[int]:
    """A closed route from its first point on."""
    place = list(order).index(0)
    return [*order[place:], *order[:place]]


def measure_mean(values: Float[Tensor, " instances"], signature: str) -> Measurement:
    """Mean with its bootstrap interval."""
    table: Rows = np.stack((values.double().numpy(), np.ones(len(values))), axis=1)

    def score(total: Rows) -> float:
        return float(total[0] / total[1])

    return Measurement(score(table.sum(0)), *bootstrap(table, score), signature)
