// One line of the matrix: what a query reads of every key, or what every query reads of a key.

import { useEffect, useReducer } from "preact/hooks";
import { allowed, grid } from "../cells";
import type { Grid } from "../grid";
import { special } from "../labels";
import type { Attention, Axis } from "../payload";
import { compare, current, hideSpecial, key, keyAxis, other, quantity, query, queryAxis } from "../store";

export interface Cell {
  value: number;
  exact: boolean;
}

export interface Peak extends Cell {
  place: number;
}

/** The cells along a line. Hidden and masked places have none, nor have those of which nothing is known. */
export interface Line {
  length: number;
  /** False where nothing of the line was recorded, or where B has no such place and A - B is asked for. */
  known: boolean;
  cell(place: number): Cell | null;
  /** A place that may not be seen, which is not the same as one that was not looked at. */
  masked(place: number): boolean;
}

/** The matrix in sight; whoever reads it is drawn again when more of it has come. */
export function useGrid(): Grid | null {
  const shown = grid.value;
  useArrivals(shown);
  return shown;
}

/** How often cells of a matrix have come since it was first looked at. */
export function useArrivals(of: Grid | null): number {
  const [count, come] = useReducer<number, void>((before) => before + 1, 0);
  useEffect(() => of?.changed(() => come()), [of]);
  return count;
}

/** A matrix and what is read in it: the row of a query, the column of a key, each null where none is chosen. */
export interface Reading {
  grid: Grid;
  queries: Axis;
  keys: Axis;
  shown: Attention;
  query: number | null;
  row: Line | null;
  key: number | null;
  column: Line | null;
}

/** What is read in the matrix in sight; null while it is on its way, or where the page holds too little of it. */
export function useReading(): Reading | null {
  const found = useGrid();
  const [queries, keys, shown] = [queryAxis.value, keyAxis.value, current.value];
  if (!found || !queries || !keys || !shown || found.extent === "thumbnail" || found.extent === "nothing") return null;
  const [read, place] = [readingQuery(), readingKey()];
  const [row, column] = [read === null ? null : rowLine(found, read), place === null ? null : columnLine(found, place)];
  return { grid: found, queries, keys, shown, query: read, row, key: place, column };
}

/** The query that is read from: the chosen one, and the first that was recorded where nothing is chosen at all. */
export function readingQuery(): number | null {
  if (query.value === null && key.value === null) return current.value?.rows?.[0] ?? 0;
  return within(query.value, current.value?.queries);
}

/** The key that is chosen. A choice stays when another, shorter attention comes into sight, and then means nothing. */
export function readingKey(): number | null {
  return within(key.value, current.value?.keys);
}

function within(place: number | null, length = 0): number | null {
  return place !== null && place < length ? place : null;
}

export function rowLine(from: Grid, row: number): Line {
  const hidden = hideSpecial.value ? special(keyAxis.value) : NOTHING;
  const bare = { length: from.columns, known: from.rowKnown(row), cell: (place: number) => from.value(row, place) };
  return line(bare, (place) => masked(row, place), hidden);
}

export function columnLine(from: Grid, column: number): Line {
  const hidden = hideSpecial.value ? special(queryAxis.value) : NOTHING;
  const bare = { length: from.rows, known: from.columnKnown(column), cell: (place: number) => from.value(place, column) };
  return line(bare, (place) => masked(place, column), hidden);
}

const NOTHING: ReadonlySet<number> = new Set();

function masked(row: number, column: number): boolean {
  return current.value !== null && !allowed(current.value, row, column);
}

function line(bare: Omit<Line, "masked">, masked: (place: number) => boolean, hidden: ReadonlySet<number>): Line {
  return { ...bare, masked, cell: (place) => (hidden.has(place) || masked(place) ? null : bare.cell(place)) };
}

/** Whether the cells are A minus B, so that a large one either way is worth telling. */
export function differs(): boolean {
  return compare.value === "difference" && other.value !== null;
}

/** Whether a value far below 0 says as much as one far above it: in a difference, and where weights may be negative. */
export function bothWays(): boolean {
  return differs() || (quantity.value === "weights" && current.value?.signed === true);
}

/** The strongest places, in falling order; those of equal strength in the order of their places. */
export function peaks(along: Line, count: number): Peak[] {
  const rank = bothWays() ? Math.abs : (value: number) => value;
  const found: Peak[] = [];
  for (let place = 0; place < along.length && count > 0; place += 1) {
    const cell = along.cell(place);
    if (!cell || !Number.isFinite(cell.value)) continue;
    const size = rank(cell.value);
    if (found.length === count && rank(found[count - 1]!.value) >= size) continue;
    let at = found.length;
    while (at > 0 && rank(found[at - 1]!.value) < size) at -= 1;
    found.splice(at, 0, { place, ...cell });
    if (found.length > count) found.pop();
  }
  return found;
}

/** The values that stand for nothing and for all where a line is shaded: 0 and the largest, or the two ends of its scores. */
export function reach(along: Line): [number, number] {
  const values: number[] = [];
  for (let place = 0; place < along.length; place += 1) {
    const value = along.cell(place)?.value;
    if (value !== undefined && Number.isFinite(value)) values.push(bothWays() ? Math.abs(value) : value);
  }
  return ends(values);
}

/** 0 and the largest; of scores the lowest and the highest, which are never the same. */
export function ends(values: number[]): [number, number] {
  const high = values.reduce((most, value) => Math.max(most, value), scores() ? -Infinity : 0);
  const low = scores() ? values.reduce((least, value) => Math.min(least, value), high) : 0;
  return [low === high && scores() ? low - 1 : low, high];
}

/** Scores have no zero that means "not looked at": the lowest does. */
export function scores(): boolean {
  return quantity.value === "scores" && !differs();
}
