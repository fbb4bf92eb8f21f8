// The rows of the table: each query with its strongest keys, in the order that the reader asked for, a page at a time.

import type { Grid } from "../grid";
import { labels } from "../labels";
import type { Axis } from "../payload";
import type { TableOrder } from "../store";
import { type Peak, peaks, rowLine } from "./reading";

export interface Row {
  query: number;
  /** Nothing was recorded of this query. */
  missing: boolean;
  peaks: Peak[];
}

export interface Page {
  rows: Row[];
  /** Places in the order of the whole table: the first row of this page and one past its last. */
  first: number;
  end: number;
  count: number;
  /** The order holds inside this page only. */
  within: boolean;
}

const QUERIES = 50;
const CELLS = 1600;
/** Cells of a matrix above which its queries are not compared by weight all at once. */
const COMPARED = 1 << 22;

/** Queries on a page: fifty, and fewer where each has many keys. */
export function pageSize(top: number): number {
  return Math.max(1, Math.min(QUERIES, Math.floor(CELLS / top)));
}

/** The queries in the order that was asked for; a large matrix is not weighed whole, its pages are (see `within`). */
export function ordered(grid: Grid, axis: Axis, top: number, order: TableOrder): number[] {
  const places = Array.from({ length: grid.rows }, (_, place) => place);
  return within(grid, order) ? places : places.sort(comparison(grid, labels(axis), top, order));
}

/** The first row of the page with a query in it; without one, of the first page. */
export function pageStart(places: number[], query: number | null, top: number): number {
  const size = pageSize(top);
  return Math.floor(Math.max(0, query === null ? 0 : places.indexOf(query)) / size) * size;
}

/** The page that begins with a row. */
export function page(grid: Grid, axis: Axis, places: number[], first: number, top: number, order: TableOrder): Page {
  const chosen = places.slice(first, first + pageSize(top));
  const inside = within(grid, order);
  if (inside) chosen.sort(comparison(grid, labels(axis), top, order));
  const rows = chosen.map((place) => row(grid, place, top));
  return { rows, first, end: first + chosen.length, count: grid.rows, within: inside };
}

function within(grid: Grid, order: TableOrder): boolean {
  return (order.column === "largest" || order.column === "shown") && grid.rows * grid.columns > COMPARED;
}

function row(grid: Grid, query: number, top: number): Row {
  return { query, missing: !grid.rowKnown(query), peaks: peaks(rowLine(grid, query), top) };
}

/** Falling or rising by the column; rows that are equal in it stay in the order of their places. */
function comparison(grid: Grid, names: string[], top: number, order: TableOrder): (left: number, right: number) => number {
  const sign = order.falling ? -1 : 1;
  const collator = new Intl.Collator();
  const weight = remembered((place) => shownSum(peaks(rowLine(grid, place), order.column === "largest" ? 1 : top)));
  const compare = {
    place: (left: number, right: number) => left - right,
    label: (left: number, right: number) => collator.compare(names[left] ?? "", names[right] ?? ""),
    largest: (left: number, right: number) => weight(left) - weight(right),
    shown: (left: number, right: number) => weight(left) - weight(right),
  }[order.column];
  return (left, right) => sign * compare(left, right) || left - right;
}

export function shownSum(found: Peak[]): number {
  return found.reduce((sum, peak) => sum + peak.value, 0);
}

function remembered(compute: (place: number) => number): (place: number) => number {
  const known = new Map<number, number>();
  return (place) => {
    if (!known.has(place)) known.set(place, compute(place));
    return known.get(place)!;
  };
}
