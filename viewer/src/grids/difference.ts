// Two matrices over one another: B's cells at the places of A's, and A minus B, cell by cell where both have one.

import type { Alignment } from "../align";
import type { Grid, Level, Shrink } from "../grid";
import { quantiseSigned, restored } from "../grid";
import { DenseGrid, sizes } from "./dense";

/** The place of B for each place of A, -1 where there is none. */
export function places(alignment: Alignment, length: number): Int32Array {
  const found = new Int32Array(length).fill(-1);
  alignment.left.forEach((place, at) => (found[place] = alignment.right[at]!));
  return found;
}

type Make = (first: Grid, second: Grid, rows: Int32Array, columns: Int32Array) => DenseGrid;

/** A grid made of two others, made anew when more of their cells have come. */
class Joined implements Grid {
  readonly levels: Level[];
  private made: DenseGrid;
  private readonly listeners = new Set<() => void>();
  private waiting = false;

  constructor(
    readonly first: Grid,
    readonly second: Grid,
    private readonly down: Int32Array,
    private readonly across: Int32Array,
    private readonly make: Make,
  ) {
    this.levels = sizes(first.rows, first.columns);
    this.made = make(first, second, down, across);
    first.changed(() => this.renew());
    second.changed(() => this.renew());
  }

  get rows(): number {
    return this.first.rows;
  }
  get columns(): number {
    return this.first.columns;
  }
  get scale(): number {
    return this.made.scale;
  }
  get signed(): boolean {
    return this.made.signed;
  }
  get extent() {
    return this.made.extent;
  }
  get known(): Grid | null {
    return this.made.known;
  }

  fill(level: number, firstRow: number, firstColumn: number, rows: number, columns: number, out: Uint8Array, by?: Shrink): boolean {
    return this.made.fill(level, firstRow, firstColumn, rows, columns, out, by);
  }

  value(row: number, column: number): { value: number; exact: boolean } | null {
    const [high, wide] = [this.down[row]!, this.across[column]!];
    const left = this.make === subtract ? this.first.value(row, column) : { value: 0, exact: true };
    const right = high < 0 || wide < 0 ? null : this.second.value(high, wide);
    if (!left || !right) return null;
    return { value: this.make === subtract ? left.value - right.value : right.value, exact: left.exact && right.exact };
  }

  rowKnown(row: number): boolean {
    return this.first.rowKnown(row) && this.down[row]! >= 0 && this.second.rowKnown(this.down[row]!);
  }

  columnKnown(column: number): boolean {
    return this.across[column]! >= 0;
  }

  changed(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Tiles come in swarms: one making for all that come within a moment. */
  private renew(): void {
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(() => {
      this.waiting = false;
      this.made = this.make(this.first, this.second, this.down, this.across);
      this.listeners.forEach((listener) => listener());
    }, 100);
  }
}

/** A minus B at the places of A: 128 is no difference, and unknown where B has no such place. */
export function difference(first: Grid, second: Grid, queries: Alignment, keys: Alignment): Grid {
  return new Joined(first, second, places(queries, first.rows), places(keys, first.columns), subtract);
}

/** B's cells at the places of A. */
export function moved(first: Grid, second: Grid, queries: Alignment, keys: Alignment): Grid {
  return new Joined(first, second, places(queries, first.rows), places(keys, first.columns), move);
}

/** Above this many cells the table of pairs is taken even where values are exact: a picture has 256 colours anyway. */
const EXACT = 1 << 18;

/** Cells are computed from the exact values where both have them, else from bytes through a table of all pairs. */
function subtract(first: Grid, second: Grid, rows: Int32Array, columns: Int32Array): DenseGrid {
  const exact = first.rows * first.columns <= EXACT && first.value(0, 0)?.exact && second.value(0, 0)?.exact;
  const out = exact ? exactly(first, second, rows, columns) : byPairs(first, second, rows, columns);
  const there = both(first, second, rows, columns);
  return new DenseGrid({ rows: first.rows, columns: first.columns, bytes: out, there, signed: true });
}

/** 1 where a cell is known in both; null where all are. */
function both(first: Grid | null, second: Grid, rows: Int32Array, columns: Int32Array): Uint8Array | null {
  const [left, right] = [first?.known ?? null, second.known];
  if (!left && !right) return null;
  const [here, there] = [left && bytes(left), right && bytes(right)];
  const out = new Uint8Array(rows.length * columns.length);
  for (let row = 0; row < rows.length; row += 1) {
    for (let column = 0; column < columns.length; column += 1) {
      const [high, wide] = [rows[row]!, columns[column]!];
      const at = row * columns.length + column;
      const away = high >= 0 && wide >= 0 && (!there || there[high * second.columns + wide] !== 0);
      out[at] = away && (!here || here[at] !== 0) ? 1 : 0;
    }
  }
  return out;
}

function exactly(first: Grid, second: Grid, rows: Int32Array, columns: Int32Array): Uint8Array {
  const out = new Uint8Array(rows.length * columns.length).fill(128);
  for (let row = 0; row < rows.length; row += 1) {
    for (let column = 0; column < columns.length; column += 1) {
      if (rows[row]! < 0 || columns[column]! < 0) continue;
      const [a, b] = [first.value(row, column), second.value(rows[row]!, columns[column]!)];
      if (a && b) out[row * columns.length + column] = quantiseSigned(a.value - b.value);
    }
  }
  return out;
}

function byPairs(first: Grid, second: Grid, rows: Int32Array, columns: Int32Array): Uint8Array {
  const [left, right, pairs] = [bytes(first), bytes(second), table(first, second)];
  const out = new Uint8Array(left.length).fill(128);
  for (let row = 0; row < rows.length; row += 1) {
    const [line, away] = [row * columns.length, rows[row]! * second.columns];
    for (let column = 0; away >= 0 && column < columns.length; column += 1) {
      if (columns[column]! >= 0) out[line + column] = pairs[(left[line + column]! << 8) | right[away + columns[column]!]!]!;
    }
  }
  return out;
}

function move(first: Grid, second: Grid, rows: Int32Array, columns: Int32Array): DenseGrid {
  const right = bytes(second);
  const out = new Uint8Array(first.rows * first.columns).fill(second.signed ? 128 : 0);
  for (let row = 0; row < rows.length; row += 1) {
    const [line, away] = [row * columns.length, rows[row]! * second.columns];
    for (let column = 0; away >= 0 && column < columns.length; column += 1) {
      if (columns[column]! >= 0) out[line + column] = right[away + columns[column]!]!;
    }
  }
  return new DenseGrid({ rows: first.rows, columns: first.columns, bytes: out, scale: second.scale, signed: second.signed, there: both(null, second, rows, columns), extent: second.extent });
}

function bytes(grid: Grid): Uint8Array {
  const all = new Uint8Array(grid.rows * grid.columns);
  grid.fill(0, 0, 0, grid.rows, grid.columns, all);
  return all;
}

function table(first: Grid, second: Grid): Uint8Array {
  const pairs = new Uint8Array(65536);
  for (let at = 0; at < 65536; at += 1) {
    const [a, b] = [restored(at >> 8, first.scale, first.signed), restored(at & 255, second.scale, second.signed)];
    pairs[at] = quantiseSigned(a - b);
  }
  return pairs;
}
