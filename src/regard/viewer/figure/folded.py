"""A network in few enough boxes to read: layers that repeat become one, and what is deepest goes into what it stands in."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from regard.viewer.trace import Graph, Node

NUMBER = re.compile(r"^\d+$")


class Box(NamedTuple):
    """A box: the module's path, what it says of itself, and how many like it there are."""

    id: str
    kind: str
    lines: tuple[str, ...]
    times: int = 1


class Arrow(NamedTuple):
    """A tensor that goes from one box to another."""

    start: str
    end: str
    role: str


class Folded(NamedTuple):
    """The boxes and arrows that are drawn."""

    boxes: list[Box]
    arrows: list[Arrow]


def fold(graph: Graph, most: int) -> Folded:
    """The network in at most so many boxes, as far as folding can bring it."""
    inner = {node.parent for node in graph.nodes}
    joined = {end for edge in graph.edges for end in (edge.start, edge.end)}
    nodes = {node.id: node for node in graph.nodes if node.id not in inner or node.id in joined}
    arrows = [Arrow(edge.start, edge.end, edge.role) for edge in graph.edges if edge.start in nodes and edge.end in nodes]
    times, arrows = _repeats(nodes, arrows)
    unique = {path: nodes[path] for path in times}
    homes = _homes(unique, most)
    boxes: dict[str, Box] = {}
    for path, node in unique.items():
        home = homes[path]
        boxes.setdefault(home, _box(node, times[path]) if home == path else Box(home, "folded", (), times[path]))
    roles: dict[tuple[str, str], set[str]] = {}
    for arrow in arrows:
        start, end = homes[arrow.start], homes[arrow.end]
        if start != end:
            roles.setdefault((start, end), set()).update(arrow.role.split(",") if arrow.role else ())
    return Folded(list(boxes.values()), [Arrow(*ends, ", ".join(sorted(names))) for ends, names in roles.items()])


def _repeats(nodes: Mapping[str, Node], arrows: list[Arrow]) -> tuple[dict[str, int], list[Arrow]]:
    """Equal layers next to one another become the first of them: how many each stands for, and the arrows that remain.

    An arrow from one of these layers to another is left out: that they follow one another is what the number says.
    """
    times = dict.fromkeys(nodes, 1)
    for prefix in sorted({part for path in nodes for part in _prefixes(path)}, key=len):
        layer = _runs(prefix, _parts(prefix, times), nodes)
        arrows = [
            Arrow(_moved(arrow.start, layer), _moved(arrow.end, layer), arrow.role)
            for arrow in arrows
            if not (arrow.start in layer and arrow.end in layer and _elsewhere(layer[arrow.start], layer[arrow.end]))
        ]
        for path in [path for path in times if _moved(path, layer) != path]:
            times[_moved(path, layer)] += times.pop(path)
    return times, arrows


class _Copy(NamedTuple):
    """A module as a part of a layer that repeats: its layer's number, the first such layer's, and its path there."""

    number: int
    first: int
    ahead: str


def _runs(prefix: str, parts: Mapping[int, list[str]], nodes: Mapping[str, Node]) -> dict[str, _Copy]:
    """Every module of the layers after a prefix, and which layer stands for its own."""
    copies: dict[str, _Copy] = {}
    first, before = 0, None
    for number in sorted(parts):
        shape = {suffix: nodes[f"{prefix}{number}{suffix}"].kind for suffix in parts[number]}
        if shape != before:
            first, before = number, shape
        for suffix in parts[number]:
            copies[f"{prefix}{number}{suffix}"] = _Copy(number, first, f"{prefix}{first}{suffix}")
    return copies


def _moved(path: str, layer: Mapping[str, _Copy]) -> str:
    return layer[path].ahead if path in layer else path


def _elsewhere(start: _Copy, end: _Copy) -> bool:
    return start.first == end.first and start.number != end.number


def _prefixes(path: str) -> list[str]:
    """Prefixes of a path before each number: "encoder." of "encoder.0.cross"."""
    parts = path.split(".")
    return [".".join([*parts[:place], ""]) for place, part in enumerate(parts) if NUMBER.match(part)]


def _parts(prefix: str, paths: Iterable[str]) -> dict[int, list[str]]:
    """Suffixes by number, of the paths that begin with a prefix and a number."""
    parts: dict[int, list[str]] = {}
    for path in paths:
        match = re.match(rf"{re.escape(prefix)}(\d+)(\..*)?$", path)
        if match:
            parts.setdefault(int(match[1]), []).append(match[2] or "")
    return parts


def _homes(nodes: Mapping[str, Node], most: int) -> dict[str, str]:
    """Box of each module: its own or, where there would be too many, that of a module around it."""
    homes = {path: path for path in nodes}
    while len(set(homes.values())) > most:
        deep = [home for home in set(homes.values()) if "." in home]
        if not deep:
            break
        plain = [home for home in deep if home not in nodes or nodes[home].kind != "attention"]
        victim = max(plain or deep, key=lambda home: (home.count("."), home)).rpartition(".")[0]
        homes = {path: victim if home.startswith(f"{victim}.") else home for path, home in homes.items()}
    return homes


def _box(node: Node, times: int) -> Box:
    about = [str(node.about[name]) for name in ("score", "normalise", "scope") if node.about.get(name)]
    lines = [" · ".join(about) or (node.kind if node.kind != "attention" else "attention")]
    heads = node.about.get("heads")
    shape = "" if node.output is None else " × ".join(map(str, node.output))
    lines.append(" ".join(part for part in (f"{heads} heads," if heads and heads != 1 else "", shape) if part))
    return Box(node.id, node.kind, tuple(line for line in lines if line), times)
