"""Records of routing: the points of an instance, read from CSV or JSON lines."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from regard.config import quoted
from regard.data.lines import bounds, lines
from regard.errors import DataError
from regard.tasks.route.config import RouteData

LEAST = 3
"""Fewest points of a route, which is a closed tour."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Instance:
    """Points of a route, and the place that they were read from."""

    points: tuple[Point, ...]
    where: str = "input:1"

    @property
    def source(self) -> str:
        """The place that the points were read from."""
        return self.where

    @property
    def target(self) -> None:
        """No target: routes are learned from their length alone."""
        return None


def read_instances(data: RouteData, path: str) -> list[Instance]:
    """Instances of a file: JSON lines have one on each line, any other file has the points of one."""
    if path.removesuffix(".gz").endswith((".jsonl", ".json", ".ndjson")):
        return list(read_json_lines(data, path))
    return [read_points(data, path)]


def read_json_lines(data: RouteData, path: str) -> Iterator[Instance]:
    """Instances of a file with {"points": [[x, y], ...]} on each line."""
    for line in lines(path, bounds=bounds(data)):
        try:
            row = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{line.where} is not JSON: {error}; each line needs to be one object") from error
        cells = row.get("points") if isinstance(row, dict) else row
        if not isinstance(cells, list) or not all(isinstance(cell, list) and len(cell) == 2 for cell in cells):
            raise DataError(f'{line.where} needs {{"points": [[x, y], ...]}}, with two numbers for each point')
        yield build_instance(data, [parse_point(cell, line.where) for cell in cells], line.where)


def read_points(data: RouteData, path: str) -> Instance:
    """Instance of a CSV or TSV file with a point on each line; a first line of names is left out."""
    points = list[Point]()
    for number, line in enumerate(lines(path, bounds=bounds(data))):
        cells = [cell for cell in line.text.replace("\t", ",").replace(";", ",").split(",") if cell.strip()]
        if not cells:
            continue
        if number == 0 and not any(is_number(cell) for cell in cells):
            continue
        if len(cells) != 2:
            raise DataError(f"{line.where} needs two numbers, x and y with a comma between them, got {quoted(line.text)}")
        points.append(parse_point(cells, line.where))
        if len(points) > data.max_points:
            break
    return build_instance(data, points, path)


def is_number(text: str) -> bool:
    """True for the text of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse_point(cells: Sequence[Any], where: str) -> Point:
    """Point of two numbers; raises for what is no finite number."""
    try:
        x, y = (float(cell) for cell in cells)
    except (TypeError, ValueError):
        raise DataError(f"{where} needs two numbers for a point, got {quoted(join_cells(cells))}") from None
    if not (math.isfinite(x) and math.isfinite(y)) or max(abs(x), abs(y)) > 1e30:
        got = quoted(join_cells(cells))
        raise DataError(f"{where} has a point that is not finite, or beyond 1e30: {got}; correct it, or leave it out")
    return x, y


def join_cells(cells: Sequence[Any]) -> str:
    """Cells of a point as they stand on a line."""
    return ", ".join(str(cell).strip() for cell in cells)


def build_instance(data: RouteData, points: Sequence[Point], where: str) -> Instance:
    """Instance whose number of points was checked."""
    if not LEAST <= len(points) <= data.max_points:
        more = f"{len(points):,}" if len(points) <= data.max_points else f"more than {data.max_points:,}"
        noun = "point" if len(points) == 1 else "points"
        raise DataError(f"{where} has {more} {noun}, and a route needs {LEAST} to {data.max_points:,} (data.max_points)")
    return Instance(tuple(points), where)
