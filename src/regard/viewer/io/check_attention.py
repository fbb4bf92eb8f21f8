"""What must hold of one attention: shapes that fit the axes, and weights that are what they claim to be."""

from collections.abc import Mapping

import numpy as np

from regard.data.axis import Array, Axis
from regard.viewer.io.errors import TraceError, finite, first, floats, shaped, text
from regard.viewer.source import in_eight_bits
from regard.viewer.trace import Look

BY_QUERY, BY_KEY = ("entropy", "max", "argmax", "mean_position", "spread"), ("received", "uniform")


def tolerance(look: Look, keys: int) -> float:
    """How far from 1 a row may sum: rounding of bfloat16 weights, of float16 ones, and where so stored of 8 bits.

    In 8 bits a weight w is off by at most sqrt(w) / 255, so a row by at most sqrt(keys) / 255 and a little.
    """
    eight_bits = np.sqrt(keys) / 255 + keys / 255**2 if in_eight_bits(look.source) else 0.0
    return 5e-3 + keys * 2.0**-24 + float(eight_bits)


def heads_of(look: Look) -> int:
    """How many heads an attention has, by whatever was recorded of it."""
    measured = [array for name, array in look.statistics.items() if name != "uniform"]
    for array in (look.weights, look.scores, *measured, look.values):
        if array is not None and array.ndim:
            return len(array)
    return 0


def check_look(look: Look, axes: Mapping[str, Axis], where: str, quick: bool = False) -> None:
    """Raise TraceError where an attention does not fit its axes, or its weights are none."""
    for role, name in (("query", look.query), ("key", look.key)):
        if name not in axes:
            raise TraceError(
                f"{where}: its {role} axis is {name!r}, and the example has the axes {', '.join(axes) or 'none'}"
            )
    if look.layer < 0:
        raise TraceError(f"{where}: the layer must be 0 or more, got {look.layer}")
    text(look.source, f"{where}, source")
    queries, keys, heads = len(axes[look.query]), len(axes[look.key]), heads_of(look)
    if heads == 0:
        raise TraceError(
            f"{where}: neither weights nor statistics were recorded; give it at least one of them, with heads first"
        )
    rows = _rows(look, queries, where)
    cells = (heads, len(rows), keys)
    for name, array in (("weights", look.weights), ("scores", look.scores)):
        if array is not None:
            floats(array, name, where)
            if array.shape == (heads, keys, len(rows)) != cells:
                raise TraceError(f"{where}: {name} must be (heads, queries, keys) = {cells}, these have keys before queries")
            shaped(array, cells, f"{name} (heads, {look.query}, {look.key})", where)
    if look.values is not None:
        floats(look.values, "values", where)
        shaped(look.values, (heads, keys), f"values (heads, {look.key})", where)
        finite(look.values, ("head", "key"), "a value's length", where)
    _allowed(look, (heads, queries, keys), where)
    _statistics(look, (heads, queries, keys), where)
    _weights(look, rows, where, quick)
    if look.scores is not None:
        _scores(look.scores, where)


def _rows(look: Look, queries: int, where: str) -> tuple[int, ...]:
    if look.rows is None:
        return tuple(range(queries))
    for row in look.rows:
        if not 0 <= row < queries:
            raise TraceError(
                f"{where}: row {row} was recorded, and the axis {look.query!r} has {queries} places, 0 to {queries - 1}"
            )
    if list(look.rows) != sorted(set(look.rows)) or not look.rows:
        raise TraceError(f"{where}: rows must name each recorded query once, in order, got {look.rows}")
    return look.rows


def _allowed(look: Look, cells: tuple[int, int, int], where: str) -> None:
    if look.allowed is None:
        return
    if look.allowed.dtype != bool:
        raise TraceError(f"{where}: allowed must be boolean, True where a query may see a key, got {look.allowed.dtype}")
    if look.allowed.shape not in (cells, cells[1:]):
        raise TraceError(
            f"{where}: allowed must be (queries, keys) = {cells[1:]} or (heads, queries, keys) = {cells}, "
            f"got {look.allowed.shape}"
        )


def _statistics(look: Look, cells: tuple[int, int, int], where: str) -> None:
    """Of every query or of every key; a name that is not known may be either, or several numbers for each query."""
    heads, queries, keys = cells
    by_query, by_key = [(heads, queries)], [(heads, keys)]
    for name, array in look.statistics.items():
        shapes = by_query if name in BY_QUERY else by_key if name in BY_KEY else [*by_query, *by_key, (keys,)]
        shapes = [*shapes, (keys,)] if name == "uniform" else shapes  # heads that may see the same share it
        several = name not in (*BY_QUERY, *BY_KEY) and array.ndim == 3 and array.shape[:2] == (heads, queries)
        if array.shape not in shapes and not several:
            wanted = " or ".join(map(str, shapes))
            raise TraceError(f"{where}: the statistic {name!r} must be of shape {wanted} to fit the axes, got {array.shape}")
        names = ("head", "place", "rank") if array.ndim > 1 else ("place",)
        finite(array, names, f"the statistic {name!r}", where)


def _weights(look: Look, rows: tuple[int, ...], where: str, quick: bool) -> None:
    if look.weights is None:
        return
    for head, matrix in enumerate(look.weights):
        place = f"{where}, head {head}"
        _values(matrix, look.sums_to_one, rows, place)
        if not quick:
            _zeros(matrix, look, head, rows, place)
            if look.sums_to_one:
                _sums(matrix, look, head, rows, place)


def _values(matrix: Array, sums_to_one: bool, rows: tuple[int, ...], place: str) -> None:
    """All finite, and none negative where rows sum to one.

    As whole numbers, the bits of floats that are neither negative nor infinite nor NaN are below those of infinity: so the
    usual case takes one fast pass.
    """
    bits, infinity = (np.uint16, 0x7C00) if matrix.dtype == np.float16 else (np.uint32, 0x7F800000)
    if matrix.view(bits).max() < infinity:
        return
    if not np.isfinite(matrix).all():
        row, key = first(~np.isfinite(matrix))
        raise TraceError(f"{place}, query {rows[row]}, key {key}: a weight must be a finite number, got {matrix[row, key]}")
    if sums_to_one and (matrix < 0).any():
        row, key = first(matrix < 0)
        raise TraceError(
            f"{place}, query {rows[row]}, key {key}: a weight of an attention that sums to one cannot be negative, "
            f"got {matrix[row, key]:g}; where it does not sum to one say sums_to_one=False"
        )


def _zeros(matrix: Array, look: Look, head: int, rows: tuple[int, ...], place: str) -> None:
    if look.allowed is None:
        return
    wrong = (matrix != 0) & ~_part(look.allowed, head, rows)
    if wrong.any():
        row, key = first(wrong)
        raise TraceError(
            f"{place}, query {rows[row]}, key {key}: what is not allowed must have weight 0, got {matrix[row, key]:g}; "
            "allowed is True where a query may see a key"
        )


def _sums(matrix: Array, look: Look, head: int, rows: tuple[int, ...], place: str) -> None:
    sums = matrix.sum(-1, dtype=np.float64)
    wrong = np.abs(sums - 1) > tolerance(look, matrix.shape[-1])
    if look.allowed is not None:  # a query that may see nothing reads nothing
        wrong &= _part(look.allowed, head, rows).any(-1) | (sums != 0)
    if wrong.any():
        [row] = first(wrong)
        columns = np.abs(matrix.sum(0, dtype=np.float64) - 1) < tolerance(look, matrix.shape[0])
        advice = "its columns do: the layout is (heads, queries, keys)" if columns.all() else "else say sums_to_one=False"
        raise TraceError(f"{place}, query {rows[row]}: weights must sum to 1, these sum to {sums[row]:.4g}; {advice}")


def _part(allowed: Array, head: int, rows: tuple[int, ...]) -> Array:
    part = allowed if allowed.ndim == 2 else allowed[head]
    return part if len(rows) == len(part) else part[list(rows)]


def _scores(scores: Array, where: str) -> None:
    """Scores may be minus infinity, where nothing is allowed, and nothing else that is no number."""
    wrong = np.isnan(scores) | (scores == np.inf)
    if wrong.any():
        head, row, key = first(wrong)
        raise TraceError(
            f"{where}, head {head}, row {row}, key {key}: a score must be a number or -inf, got {scores[head, row, key]}"
        )
