"""Batches of instances with equally many points."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.batch import Padded, map_tensors
from regard.data.loader import Part
from regard.tasks.route.records import Instance

MOST = 1 << 16
"""Most pairs of points of a batch of an evaluation, unless one instance has more."""


class RouteExample(NamedTuple):
    """Points of an instance in the unit square, and its record."""

    points: Float[Tensor, "points 2"]
    record: Instance


class Points(NamedTuple):
    """Points of instances, all of one number."""

    data: Float[Tensor, "batch points 2"]
    keep: Bool[Tensor, "batch points"]

    @property
    def lengths(self) -> None:
        """Lengths of targets; None: a route has as many steps as points."""
        return None

    def to(self, device: torch.device | str) -> "Points":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    def select_rows(self, rows: Sequence[int]) -> "Points":
        """These instances."""
        return map_tensors(lambda tensor: tensor[list(rows)], self)

    def round_shape(self) -> "Points":
        """The points themselves: none is padding."""
        return self


class RouteBatch(NamedTuple):
    """Instances of a batch."""

    source: Points
    target: Padded | None = None
    records: tuple[Instance, ...] = ()

    def to(self, device: torch.device | str) -> "RouteBatch":
        """Copy on another device."""
        return map_tensors(lambda tensor: tensor.to(device, non_blocking=True), self)

    @property
    def rows(self) -> int:
        """Number of instances."""
        return len(self.source.data)

    def select_rows(self, rows: Sequence[int]) -> "RouteBatch":
        """Batch of these instances."""
        return RouteBatch(self.source.select_rows(rows), None, tuple(self.records[row] for row in rows if self.records))

    def round_shape(self) -> "RouteBatch":
        """The batch itself."""
        return self

    def unpack(self) -> "RouteBatch":
        """The batch itself: rows are never packed."""
        return self


def stack_points(points: Float[Tensor, "batch points 2"]) -> Points:
    """Points of which none is padding."""
    return Points(points, torch.ones(points.shape[:2], dtype=torch.bool))


def scale_points(points: Float[Tensor, "points 2"]) -> Float[Tensor, "points 2"]:
    """Points moved and scaled into the unit square, with the same factor in both directions."""
    first = points.amin(0)
    side = (points.amax(0) - first).amax()
    return ((points - first) / side.clamp_min(1e-300)).float()


class GeneratedPoints:
    """Endless batches of points, uniform in the unit square; a batch is a function of the seed and its number."""

    def __init__(self, size: int, points: int, seed: int):
        self.size, self.points, self.seed = size, points, seed

    def batch(self, step: int) -> RouteBatch:
        """The batch of one step."""
        generator = torch.Generator().manual_seed((self.seed << 32) + step + 1)
        return RouteBatch(stack_points(torch.rand(self.size, self.points, 2, generator=generator)))


class RouteLoader:
    """Batches of given instances, those of one number of points together; in training they come in a random order."""

    def __init__(self, examples: Sequence[RouteExample], size: int, seed: int = 0):
        if not examples:
            raise ValueError("a loader needs at least one instance, got none")
        self.examples, self.seed = examples, seed
        order = sorted(range(len(examples)), key=lambda index: len(examples[index].points))
        self.parts = list[list[int]]()
        for index in order:
            count = len(examples[index].points)
            last = self.parts[-1] if self.parts else []
            room = min(size, max(1, MOST // count**2))
            if last and len(examples[last[0]].points) == count and len(last) < room:
                last.append(index)
            else:
                self.parts.append([index])

    def batch(self, step: int) -> RouteBatch:
        """The batch of one step, counted from 0 over all epochs."""
        epoch, place = divmod(step, len(self.parts))
        generator = torch.Generator().manual_seed((self.seed << 32) + epoch + 1)
        return self.collate(self.parts[int(torch.randperm(len(self.parts), generator=generator)[place])])

    def steps_per_epoch(self) -> int:
        """Number of batches of an epoch."""
        return len(self.parts)

    def in_order(self) -> Iterator[Part]:
        """Every instance once, with its index."""
        for part in self.parts:
            yield Part(part, self.collate(part))

    def collate(self, indices: Sequence[int]) -> RouteBatch:
        """Batch of the instances with these indices."""
        chosen = [self.examples[index] for index in indices]
        records: tuple[Any, ...] = tuple(example.record for example in chosen)
        return RouteBatch(stack_points(torch.stack([example.points for example in chosen])), None, records)
