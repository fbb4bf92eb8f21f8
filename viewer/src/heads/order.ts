// Which heads are shown, and in what order.

import type { Attention } from "../payload";
import type { Head } from "../store";
import type { Statistic } from "./statistics";

/** One head of one attention in the matrix of heads. */
export interface Cell {
  attention: Attention;
  head: Head;
  row: number;
  column: number;
  /** Whether it passes the filter; those that do not stay in their place, faintly. */
  passes: boolean;
}

export interface Order {
  statistic: Statistic;
  rising: boolean;
}

export interface Filter {
  statistic: Statistic;
  bound: "least" | "most";
  value: number;
}

export interface Arranged {
  cells: Cell[];
  rows: number;
  columns: number;
}

type Numbers = (attention: Attention, head: Head, statistic: Statistic) => number | null;

/** Layers down and heads across, the mean in a last column. */
export function matrix(layers: Attention[], filter: Filter | null, numbers: Numbers): Arranged {
  const columns = Math.max(0, ...layers.map((layer) => layer.heads)) + 1;
  const cells = layers.flatMap((attention, row) => {
    const own = headsOf(attention).map((head, column) => ({ attention, head, row, column, passes: passes(attention, head, filter, numbers) }));
    return [...own, { attention, head: "mean" as const, row, column: columns - 1, passes: true }];
  });
  return { cells, rows: layers.length, columns };
}

/** Heads of all layers by a number, those that the filter leaves out gone; what is not known comes last. */
export function ranked(layers: Attention[], order: Order, filter: Filter | null, columns: number, numbers: Numbers): Arranged {
  const all = layers.flatMap((attention) => headsOf(attention).map((head) => ({ attention, head })));
  const kept = all
    .filter(({ attention, head }) => passes(attention, head, filter, numbers))
    .map((each) => ({ ...each, value: numbers(each.attention, each.head, order.statistic) }))
    .sort((left, right) => later(left.value, right.value, order.rising));
  const cells = kept.map(({ attention, head }, place) => ({
    attention,
    head,
    row: Math.floor(place / columns),
    column: place % columns,
    passes: true,
  }));
  return { cells, rows: Math.ceil(cells.length / columns), columns };
}

function later(left: number | null, right: number | null, rising: boolean): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return rising ? left - right : right - left;
}

export function headsOf(attention: Attention): number[] {
  return Array.from({ length: attention.heads }, (_, head) => head);
}

export function passes(attention: Attention, head: Head, filter: Filter | null, numbers: Numbers): boolean {
  if (!filter) return true;
  const value = numbers(attention, head, filter.statistic);
  if (value === null) return false;
  return filter.bound === "least" ? value >= filter.value : value <= filter.value;
}

/** The lowest and the highest of a statistic over all heads, and whose they are; null where none is known. */
export function extremes(layers: Attention[], statistic: Statistic, numbers: Numbers): { low: Extreme; high: Extreme } | null {
  const known = layers
    .flatMap((attention) => headsOf(attention).map((head) => ({ attention, head, value: numbers(attention, head, statistic) })))
    .flatMap(({ attention, head, value }) => (value === null ? [] : [{ attention, head, value }]))
    .sort((left, right) => left.value - right.value);
  return known.length === 0 ? null : { low: known[0]!, high: known.at(-1)! };
}

export interface Extreme {
  attention: Attention;
  head: Head;
  value: number;
}

/** The cell that a key leads to from another; null where the key is none of ours. At the border one stays. */
export function moved(arranged: Arranged, from: Cell, pressed: string): Cell | null {
  const steps: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  if (pressed === "Home") return arranged.cells.find((cell) => cell.row === from.row)!;
  if (pressed === "End") return arranged.cells.findLast((cell) => cell.row === from.row)!;
  const step = steps[pressed];
  if (!step) return null;
  const ahead = arranged.cells.filter((cell) => {
    const [down, across] = [cell.row - from.row, cell.column - from.column];
    return step[0] === 0 ? down === 0 && across * step[1] > 0 : down * step[0] > 0;
  });
  const cost = (cell: Cell) => 1000 * Math.abs(cell.row - from.row) + Math.abs(cell.column - from.column);
  return ahead.reduce<Cell | null>((best, cell) => (best === null || cost(cell) < cost(best) ? cell : best), null) ?? from;
}
