// A matrix that lies in the page whole, and its pyramid: every level half of the one before, by maximum.

import type { Extent, Grid, Level, Shrink } from "../grid";
import { quantise, quantiseSigned, restore, restored, restoreSigned } from "../grid";

/** Levels stop when both sides are this small, as in Python's quantise.py. */
export const SMALLEST = 128;

export interface Cells {
  rows: number;
  columns: number;
  bytes: Uint8Array;
  scale?: number;
  signed?: boolean;
  extent?: Extent;
  /** The values themselves, where they were kept. */
  exact?: Float32Array | null;
  /** 1 where a cell is known at all; left out: everywhere. */
  there?: Uint8Array | null;
  /** 1 for rows that were recorded; left out: all. */
  recorded?: Uint8Array | null;
}

export class DenseGrid implements Grid {
  readonly rows: number;
  readonly columns: number;
  readonly scale: number;
  readonly signed: boolean;
  readonly extent: Extent;
  readonly levels: Level[];
  /** The cells of each level. */
  readonly pyramid: Uint8Array[];

  private knownCells: DenseGrid | null = null;
  private meanCells: Uint8Array[] | null = null;

  constructor(private readonly cells: Cells) {
    this.rows = cells.rows;
    this.columns = cells.columns;
    this.scale = cells.scale ?? 1;
    this.signed = cells.signed ?? false;
    this.extent = cells.extent ?? "all";
    this.levels = sizes(cells.rows, cells.columns);
    this.pyramid = pyramid(cells.bytes, this.levels, this.signed);
  }

  get known(): Grid | null {
    const { there, rows, columns } = this.cells;
    if (!there || this.extent === "thumbnail" || this.extent === "nothing") return null;
    return (this.knownCells ??= new DenseGrid({ rows, columns, bytes: there }));
  }

  fill(level: number, firstRow: number, firstColumn: number, rows: number, columns: number, out: Uint8Array, by: Shrink = "maximum"): boolean {
    const source = by === "mean" ? this.mean()[level]! : this.pyramid[level]!;
    const width = this.levels[level]!.columns;
    for (let row = 0; row < rows; row += 1) {
      const start = (firstRow + row) * width + firstColumn;
      out.set(source.subarray(start, start + columns), row * columns);
    }
    return true;
  }

  /** The pyramid of means, made when it is first asked for. */
  private mean(): Uint8Array[] {
    return (this.meanCells ??= meanPyramid(this.cells.bytes, this.levels, this.signed));
  }

  value(row: number, column: number): { value: number; exact: boolean } | null {
    const at = row * this.columns + column;
    if (!this.rowKnown(row) || this.cells.there?.[at] === 0) return null;
    if (this.cells.exact) return { value: this.cells.exact[at]!, exact: true };
    const byte = this.cells.bytes[at]!;
    return { value: this.signed ? restoreSigned(byte, this.scale) : restore(byte, this.scale), exact: false };
  }

  rowKnown(row: number): boolean {
    return this.cells.recorded?.[row] !== 0;
  }

  columnKnown(): boolean {
    return true;
  }

  changed(): () => void {
    return () => undefined;
  }
}

/** The size of every level. */
export function sizes(rows: number, columns: number): Level[] {
  const levels = [{ rows, columns }];
  while (Math.max(levels.at(-1)!.rows, levels.at(-1)!.columns) > SMALLEST) {
    const last = levels.at(-1)!;
    levels.push({ rows: Math.ceil(last.rows / 2), columns: Math.ceil(last.columns / 2) });
  }
  return levels;
}

function pyramid(bytes: Uint8Array, levels: Level[], signed: boolean): Uint8Array[] {
  const made = [bytes];
  for (let at = 1; at < levels.length; at += 1) made.push(halve(made[at - 1]!, levels[at - 1]!, levels[at]!, signed));
  return made;
}

/** Levels of means. They are taken of weights, not of bytes, which are roots; the weights stay as they are from level to level. */
function meanPyramid(bytes: Uint8Array, levels: Level[], signed: boolean): Uint8Array[] {
  const weight = Float32Array.from({ length: 256 }, (_, byte) => restored(byte, 1, signed));
  const made = [bytes];
  let values = Float32Array.from(bytes, (byte) => weight[byte]!);
  for (let at = 1; at < levels.length; at += 1) {
    values = halveMean(values, levels[at - 1]!, levels[at]!);
    made.push(Uint8Array.from(values, (value) => (signed ? quantiseSigned(value) : quantise(value))));
  }
  return made;
}

/** Each cell the mean of four; at an odd end of those that are there. */
function halveMean(values: Float32Array, from: Level, to: Level): Float32Array<ArrayBuffer> {
  const half = new Float32Array(to.rows * to.columns);
  for (let row = 0; row < to.rows; row += 1) {
    const upper = 2 * row * from.columns;
    const lower = Math.min(2 * row + 1, from.rows - 1) * from.columns;
    for (let column = 0; column < to.columns; column += 1) {
      const left = 2 * column;
      const right = Math.min(left + 1, from.columns - 1);
      half[row * to.columns + column] = (values[upper + left]! + values[upper + right]! + values[lower + left]! + values[lower + right]!) / 4;
    }
  }
  return half;
}

/** Each cell the largest of four; where cells are signed, the one farthest from the middle. */
export function halve(bytes: Uint8Array, from: Level, to: Level, signed: boolean): Uint8Array {
  const half = new Uint8Array(to.rows * to.columns);
  const larger = signed ? farther : Math.max;
  for (let row = 0; row < to.rows; row += 1) {
    const upper = 2 * row * from.columns;
    const lower = Math.min(2 * row + 1, from.rows - 1) * from.columns;
    const start = row * to.columns;
    const pairs = from.columns >> 1;
    if (!signed) halveRow(bytes, upper, lower, half, start, pairs);
    for (let column = signed ? 0 : pairs; column < to.columns; column += 1) {
      const left = 2 * column;
      const right = Math.min(left + 1, from.columns - 1);
      const above = larger(bytes[upper + left]!, bytes[upper + right]!);
      half[start + column] = larger(above, larger(bytes[lower + left]!, bytes[lower + right]!));
    }
  }
  return half;
}

/** The hot loop, without calls: four thousand rows of it stand between a reader and a large matrix. */
function halveRow(bytes: Uint8Array, upper: number, lower: number, half: Uint8Array, start: number, pairs: number): void {
  for (let at = 0; at < pairs; at += 1) {
    const a = bytes[upper + 2 * at]!;
    const b = bytes[upper + 2 * at + 1]!;
    const c = bytes[lower + 2 * at]!;
    const d = bytes[lower + 2 * at + 1]!;
    const above = a > b ? a : b;
    const below = c > d ? c : d;
    half[start + at] = above > below ? above : below;
  }
}

/** Of two signed bytes the one farther from the middle. */
export function farther(left: number, right: number): number {
  return Math.abs(left - 128) >= Math.abs(right - 128) ? left : right;
}
