// The lines between two sequences: where each begins and ends, and how strong it is drawn.

import type { Grid } from "../grid";
import { bothWays, differs, ends, type Line, type Peak, peaks, rowLine, scores } from "./reading";
import { strength } from "./strength";

export interface Strand {
  query: number;
  key: number;
  value: number;
  exact: boolean;
  /** 0 to 1, on the chosen scale. */
  strength: number;
  /** The head whose line it is, where several are drawn. */
  head?: number;
  /** The query has given more than half of its attention to this key. */
  hard: boolean;
}

/** Lines that may be in sight at once, so that the page stays quick whatever is asked for. */
export const MOST_STRANDS = 1200;

/** How many heads share the lines, and which pairs of places may have one. */
export interface Wanted {
  heads?: number;
  between?(query: number, key: number): boolean;
}

/** The strongest keys of each of these queries. */
export function strands(grid: Grid, queries: number[], top: number, wanted: Wanted = {}): Strand[] {
  const { heads = 1, between = () => true } = wanted;
  const count = Math.min(top, Math.max(1, Math.floor(MOST_STRANDS / Math.max(1, queries.length * heads))));
  const row = (query: number): Line => {
    const line = rowLine(grid, query);
    return { ...line, cell: (place) => (between(query, place) ? line.cell(place) : null) };
  };
  const found = queries.flatMap((query) => peaks(row(query), count).map((peak) => ({ query, peak })));
  const values = found.map((each) => each.peak.value);
  const [low, high] = scores() || bothWays() ? ends(values.map(bothWays() ? Math.abs : Number)) : [0, grid.scale];
  return found
    .filter((each) => each.peak.value !== 0 || scores())
    .map(({ query, peak }) => ({
      query,
      key: peak.place,
      value: peak.value,
      exact: peak.exact,
      strength: strength(peak.value, low, high),
      hard: hard(peak),
    }));
}

function hard(peak: Peak): boolean {
  return !differs() && !scores() && peak.value > 0.5;
}

/** The middle of a place, where `count` of them share a length evenly. */
export function middle(place: number, count: number, length: number): number {
  return ((place + 0.5) * length) / count;
}

/** The places whose middles lie in [from, to], as first and one past the last. */
export function inSight(count: number, length: number, from: number, to: number): [number, number] {
  const first = Math.min(count, Math.max(0, Math.ceil((from / length) * count - 0.5)));
  const end = Math.min(count, Math.floor((to / length) * count - 0.5) + 1);
  return [first, Math.max(first, end)];
}
