// Which cells are not painted: those that a query may not see, and those of which nothing is known. Under them is the hatch.

import type { Grid } from "../grid";
import { DenseGrid } from "../grids/dense";
import { causalOffset, maskOf } from "../mask";
import { type Plan, Reader, type Shown } from "../paint";
import type { Attention } from "../payload";

const masks = new WeakMap<Uint8Array, DenseGrid>();

/** What shows of a matrix: a block as soon as one of its cells does. */
export function shownOf(attention: Attention, grid: Grid): Shown {
  const given = maskOf(attention);
  const reader = new Reader();
  const gaps = hasGaps(grid);
  return (plan) => {
    const known = grid.known;
    if (attention.mask === "full" && !gaps && !known) return null;
    const shown = new Uint8Array(plan.rows * plan.columns).fill(1);
    if (attention.mask === "causal") cutTriangle(plan, causalOffset(attention), shown);
    if (attention.mask === "given" && given) shown.set(reader.bytes(pyramid(given, attention), plan).bytes.subarray(0, shown.length));
    if (gaps) cutGaps(grid, plan, shown);
    if (known) cutUnknown(reader.bytes(known, plan).bytes, shown);
    return shown;
  };
}

/** Whether anything is hatched at all. */
export function hides(attention: Attention, grid: Grid): boolean {
  return attention.mask !== "full" || hasGaps(grid) || grid.known !== null;
}

function hasGaps(grid: Grid): boolean {
  for (let row = 0; row < grid.rows; row += 1) if (!grid.rowKnown(row)) return true;
  for (let column = 0; column < grid.columns; column += 1) if (!grid.columnKnown(column)) return true;
  return false;
}

function pyramid(given: Uint8Array, attention: Attention): DenseGrid {
  let found = masks.get(given);
  if (!found) {
    found = new DenseGrid({ rows: attention.queries, columns: attention.keys, bytes: given });
    masks.set(given, found);
  }
  return found;
}

/** A block shows if its last query may see its first key. */
function cutTriangle({ rows, columns, high, wide, firstRow, firstColumn }: Plan, offset: number, shown: Uint8Array): void {
  for (let row = 0; row < rows; row += 1) {
    const last = ((firstRow + row + 1) << high) - 1 + offset;
    const first = Math.max(0, Math.min(columns, (last >> wide) + 1 - firstColumn));
    shown.fill(0, row * columns + first, (row + 1) * columns);
  }
}

function cutGaps(grid: Grid, { rows, columns, high, wide, firstRow, firstColumn }: Plan, shown: Uint8Array): void {
  for (let row = 0; row < rows; row += 1) {
    const known = some((firstRow + row) << high, Math.min(grid.rows, (firstRow + row + 1) << high), (place) => grid.rowKnown(place));
    if (!known) shown.fill(0, row * columns, (row + 1) * columns);
  }
  for (let column = 0; column < columns; column += 1) {
    const end = Math.min(grid.columns, (firstColumn + column + 1) << wide);
    const known = some((firstColumn + column) << wide, end, (place) => grid.columnKnown(place));
    for (let row = 0; !known && row < rows; row += 1) shown[row * columns + column] = 0;
  }
}

/** A block is hidden where nothing of it is known. */
function cutUnknown(known: Uint8Array, shown: Uint8Array): void {
  for (let at = 0; at < shown.length; at += 1) if (known[at] === 0) shown[at] = 0;
}

function some(first: number, end: number, holds: (place: number) => boolean): boolean {
  for (let place = first; place < end; place += 1) if (holds(place)) return true;
  return false;
}
