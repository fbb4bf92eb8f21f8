"""Validation of one attention: shapes that fit the axes, and weights within their bounds."""

from collections.abc import Mapping

import numpy as np

from regard.data.axis import Array, Axis
from regard.viewer.io.errors import TraceError, finite, first, floats, shaped, text
from regard.viewer.source import in_eight_bits
from regard.viewer.trace import AttentionMap

BY_QUERY, BY_KEY = ("entropy", "max", "argmax", "mean_position", "spread"), ("received", "uniform")


def tolerance(attention_map: AttentionMap, keys: int) -> float:
    """Tolerance of the sum of a row around 1: rounding of bfloat16 weights, of float16 ones, and where so stored of 8 bits.

    In 8 bits a weight w is off by at most sqrt(w) / 255, so a row by at most sqrt(keys) / 255 and a little.
    """
    eight_bits = np.sqrt(keys) / 255 + keys / 255**2 if in_eight_bits(attention_map.source) else 0.0
    return 5e-3 + keys * 2.0**-24 + float(eight_bits)


def heads_of(attention_map: AttentionMap) -> int:
    """Number of heads of an attention, by any array that was recorded of it."""
    measured = [array for name, array in attention_map.statistics.items() if name != "uniform"]
    for array in (attention_map.weights, attention_map.scores, *measured, attention_map.values):
        if array is not None and array.ndim:
            return len(array)
    return 0


def check_look(attention_map: AttentionMap, axes: Mapping[str, Axis], where: str, quick: bool = False) -> None:
    """Raise TraceError where an attention does not fit its axes, or its weights are none."""
    for role, name in (("query", attention_map.query), ("key", attention_map.key)):
        if name not in axes:
            raise TraceError(
                f"{where}: its {role} axis is {name!r}, and the example has the axes {', '.join(axes) or 'none'}"
            )
    if attention_map.layer < 0:
        raise TraceError(f"{where}: the layer must be 0 or more, got {attention_map.layer}")
    text(attention_map.source, f"{where}, source")
    queries, keys, heads = len(axes[attention_map.query]), len(axes[attention_map.key]), heads_of(attention_map)
    if heads == 0:
        raise TraceError(
            f"{where}: neither weights nor statistics were recorded; give it at least one of them, with heads first"
        )
    rows = _rows(attention_map, queries, where)
    cells = (heads, len(rows), keys)
    for name, array in (("weights", attention_map.weights), ("scores", attention_map.scores)):
        if array is not None:
            floats(array, name, where)
            if array.shape == (heads, keys, len(rows)) != cells:
                raise TraceError(f"{where}: {name} must be (heads, queries, keys) = {cells}, these have keys before queries")
            shaped(array, cells, f"{name} (heads, {attention_map.query}, {attention_map.key})", where)
    if attention_map.values is not None:
        floats(attention_map.values, "values", where)
        shaped(attention_map.values, (heads, keys), f"values (heads, {attention_map.key})", where)
        finite(attention_map.values, ("head", "key"), "a value's length", where)
    _allowed(attention_map, (heads, queries, keys), where)
    _statistics(attention_map, (heads, queries, keys), where)
    _weights(attention_map, rows, where, quick)
    if attention_map.scores is not None:
        _scores(attention_map.scores, where)


def _rows(attention_map: AttentionMap, queries: int, where: str) -> tuple[int, ...]:
    if attention_map.rows is None:
        return tuple(range(queries))
    for row in attention_map.rows:
        if not 0 <= row < queries:
            raise TraceError(
                f"{where}: row {row} was recorded, and the axis {attention_map.query!r} has {queries} places, "
                f"0 to {queries - 1}"
            )
    if list(attention_map.rows) != sorted(set(attention_map.rows)) or not attention_map.rows:
        raise TraceError(f"{where}: rows must name each recorded query once, in order, got {attention_map.rows}")
    return attention_map.rows


def _allowed(attention_map: AttentionMap, cells: tuple[int, int, int], where: str) -> None:
    if attention_map.allowed is None:
        return
    if attention_map.allowed.dtype != bool:
        raise TraceError(
            f"{where}: allowed must be boolean, True where a query may see a key, got {attention_map.allowed.dtype}"
        )
    if attention_map.allowed.shape not in (cells, cells[1:]):
        raise TraceError(
            f"{where}: allowed must be (queries, keys) = {cells[1:]} or (heads, queries, keys) = {cells}, "
            f"got {attention_map.allowed.shape}"
        )


def _statistics(attention_map: AttentionMap, cells: tuple[int, int, int], where: str) -> None:
    """Check statistics, of queries or of keys; an unknown name may be either, or have several numbers for each query."""
    heads, queries, keys = cells
    by_query, by_key = [(heads, queries)], [(heads, keys)]
    for name, array in attention_map.statistics.items():
        shapes = by_query if name in BY_QUERY else by_key if name in BY_KEY else [*by_query, *by_key, (keys,)]
        shapes = [*shapes, (keys,)] if name == "uniform" else shapes  # heads that may see the same share it
        several = name not in (*BY_QUERY, *BY_KEY) and array.ndim == 3 and array.shape[:2] == (heads, queries)
        if array.shape not in shapes and not several:
            wanted = " or ".join(map(str, shapes))
            raise TraceError(f"{where}: the statistic {name!r} must be of shape {wanted} to fit the axes, got {array.shape}")
        names = ("head", "place", "rank") if array.ndim > 1 else ("place",)
        finite(array, names, f"the statistic {name!r}", where)


def _weights(attention_map: AttentionMap, rows: tuple[int, ...], where: str, quick: bool) -> None:
    if attention_map.weights is None:
        return
    for head, matrix in enumerate(attention_map.weights):
        place = f"{where}, head {head}"
        _values(matrix, attention_map.sums_to_one, rows, place)
        if not quick:
            _zeros(matrix, attention_map, head, rows, place)
            if attention_map.sums_to_one:
                _sums(matrix, attention_map, head, rows, place)


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


def _zeros(matrix: Array, attention_map: AttentionMap, head: int, rows: tuple[int, ...], place: str) -> None:
    if attention_map.allowed is None:
        return
    wrong = (matrix != 0) & ~_part(attention_map.allowed, head, rows)
    if wrong.any():
        row, key = first(wrong)
        raise TraceError(
            f"{place}, query {rows[row]}, key {key}: what is not allowed must have weight 0, got {matrix[row, key]:g}; "
            "allowed is True where a query may see a key"
        )


def _sums(matrix: Array, attention_map: AttentionMap, head: int, rows: tuple[int, ...], place: str) -> None:
    sums = matrix.sum(-1, dtype=np.float64)
    wrong = np.abs(sums - 1) > tolerance(attention_map, matrix.shape[-1])
    if attention_map.allowed is not None:  # a query that may see nothing reads nothing
        wrong &= _part(attention_map.allowed, head, rows).any(-1) | (sums != 0)
    if wrong.any():
        [row] = first(wrong)
        columns = np.abs(matrix.sum(0, dtype=np.float64) - 1) < tolerance(attention_map, matrix.shape[0])
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
