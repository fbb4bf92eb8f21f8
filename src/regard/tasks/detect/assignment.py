"""Assignment: one column for each row, so that all of them together cost least."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.float64]
Numbers = NDArray[np.int64]
NOBODY = -1


class Pairs(NamedTuple):
    """Assigned pairs of a row and a column, in the order of the rows."""

    rows: Numbers
    columns: Numbers


def assign(cost: Costs) -> Pairs:
    """The cheapest way to give each row a column of its own, or each column a row where there are fewer columns.

    min Σ_r cost[r, σ(r)]    over all one-to-one σ
    """
    cost = np.asarray(cost, dtype=np.float64)
    if cost.ndim != 2:
        raise ValueError(f"assign needs a table of (rows, columns), got shape {cost.shape}")
    if cost.shape[0] > cost.shape[1]:
        turned = assign(cost.T)
        order = np.argsort(turned.columns)
        return Pairs(turned.columns[order], turned.rows[order])
    columns = assign_all(cost[None], np.array([cost.shape[0]]))[0]
    return Pairs(np.arange(len(columns)), columns)


def assign_all(costs: Costs, counts: Numbers) -> Numbers:
    """The column of each row in many tables at once, (tables, rows); -1 for rows from a table's count on.

    Shortest augmenting paths with potentials: the Hungarian method in time O(rows² columns) for each table, after Kuhn 1955,
    https://doi.org/10.1002/nav.3800020109, and Jonker and Volgenant 1987, https://doi.org/10.1007/BF02278710
    All tables take their steps side by side, so that a step costs one pass through numpy, however many they are.
    """
    costs, counts = np.asarray(costs, dtype=np.float64), np.asarray(counts, dtype=np.int64)
    check(costs, counts)
    if costs.size == 0:
        return np.full(costs.shape[:2], NOBODY)
    search = Search(costs, counts)
    while len(search.active):
        search.step()
    return search.column_of


def check(costs: Costs, counts: Numbers) -> None:
    """Raise where no assignment exists or none would be the cheapest."""
    if costs.ndim != 3 or counts.shape != costs.shape[:1]:
        raise ValueError(
            f"assign_all needs tables of (tables, rows, columns) and a count of rows for each, "
            f"got shapes {costs.shape} and {counts.shape}"
        )
    tables, rows, columns = costs.shape
    if tables and (counts.min() < 0 or counts.max() > min(rows, columns)):
        raise ValueError(
            f"each row needs a column of its own: a table has {int(counts.max())} rows to place among {columns} columns "
            f"(of {rows} rows in all); give it more columns"
        )
    real = np.arange(rows)[None] < counts[:, None]
    if not np.isfinite(costs[real]).all():
        table, row = np.argwhere(~np.isfinite(costs).all(-1) & real)[0]
        raise ValueError(f"costs need to be finite numbers, and row {row} of table {table} has one that is not")


class Search:
    """The state of all tables: who has which column, the potentials, and the tree of the path that each is looking for."""

    def __init__(self, costs: Costs, counts: Numbers):
        tables, rows, columns = costs.shape
        self.costs, self.counts = costs, counts
        self.u, self.v = np.zeros((tables, rows)), np.zeros((tables, columns))
        self.column_of = np.full((tables, rows), NOBODY)
        self.row_of = np.full((tables, columns), NOBODY)
        self.start = np.zeros(tables, dtype=np.int64)
        """The row that looks for a column now."""
        self.row = np.zeros(tables, dtype=np.int64)
        """The row whose costs are looked at now: the first row, or one that would have to give its column away."""
        self.reached = np.zeros(tables)
        """Cost of the path to that row."""
        self.shortest = np.full((tables, columns), np.inf)
        self.before = np.zeros((tables, columns), dtype=np.int64)
        self.closed = np.zeros((tables, columns), dtype=bool)
        self.active = np.flatnonzero(counts > 0)

    def step(self) -> None:
        """Lengthen the shortest path of every table by one column; where that column is free, take it."""
        table = self.active
        row, closed, reached = self.row[table], self.closed[table], self.reached[table]
        through = self.costs[table, row] - self.v[table] + (reached - self.u[table, row])[:, None]
        shortest = self.shortest[table]
        better = (through < shortest) & ~closed
        shortest = np.where(better, through, shortest)
        before = np.where(better, row[:, None], self.before[table])
        index = np.arange(len(table))
        column = np.where(closed, np.inf, shortest).argmin(1)
        closed[index, column] = True
        self.shortest[table], self.before[table], self.closed[table] = shortest, before, closed
        self.reached[table] = shortest[index, column]
        owner = self.row_of[table, column]
        self.row[table] = owner
        free = owner == NOBODY
        if free.any():
            self.raise_potentials(table[free])
            self.take(table[free], column[free])
            self.next_row(table[free])

    def raise_potentials(self, table: Numbers) -> None:
        """Keep reduced costs at 0 or more, and at 0 along the path that was found."""
        closed, reached = self.closed[table], self.reached[table]
        less = np.where(closed, reached[:, None] - self.shortest[table], 0.0)
        self.v[table] -= less
        self.u[table, self.start[table]] += reached
        place, column = np.nonzero(closed)
        owner = self.row_of[table[place], column]
        owned = owner != NOBODY
        self.u[table[place[owned]], owner[owned]] += less[place[owned], column[owned]]

    def take(self, table: Numbers, column: Numbers) -> None:
        """Go back along the path: every row on it gets the column that it was left for, and gives up its own."""
        while len(table):
            row = self.before[table, column]
            former = self.column_of[table, row]
            self.row_of[table, column], self.column_of[table, row] = row, column
            more = row != self.start[table]
            table, column = table[more], former[more]

    def next_row(self, table: Numbers) -> None:
        """Begin with the next row, with an empty tree; a table without another is done."""
        self.start[table] += 1
        self.row[table] = self.start[table]
        self.reached[table] = 0.0
        self.shortest[table], self.closed[table] = np.inf, False
        self.active = self.active[self.start[self.active] < self.counts[self.active]]
