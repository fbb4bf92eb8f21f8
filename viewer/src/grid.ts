// A matrix to be painted: cells of one byte, at full size and shrunk by maximum, wherever they come from.

export interface Level {
  rows: number;
  columns: number;
}

/** How cells are put together where several share a pixel. */
export type Shrink = "maximum" | "mean";

/** How much of a matrix is there: all of it, the strongest keys of each query, a small picture, or nothing. */
export type Extent = "all" | "top" | "thumbnail" | "nothing";

/** The painter asks for cells, the crosshair for one value; where they are still on their way both get nothing yet. */
export interface Grid {
  rows: number;
  columns: number;
  /** Level 0 is the matrix; each next one is half as large, the maximum or the mean of four cells. */
  levels: Level[];
  /** The weight that 255 stands for (127 away from 128 where cells are signed). */
  scale: number;
  /** Cells go both ways from 128, as in a difference or in scores; else they count up from 0. */
  signed: boolean;
  extent: Extent;
  /** 1 for cells of which something is known, 0 for the others; null where all are known. */
  readonly known: Grid | null;
  /** Cells of a level, row by row, into `out`; false where some were not there yet (`changed` then tells when). */
  fill(level: number, firstRow: number, firstColumn: number, rows: number, columns: number, out: Uint8Array, by?: Shrink): boolean;
  /** The value of one cell, and whether it is exact or out of 256 steps; null where nothing is known. */
  value(row: number, column: number): { value: number; exact: boolean } | null;
  /** Whether anything is known of a row, and of a column: some were not recorded, some have no counterpart in the other run. */
  rowKnown(row: number): boolean;
  columnKnown(column: number): boolean;
  /** Call back when more cells have come; returns how to stop. */
  changed(listener: () => void): () => void;
}

/** The weight of a byte: the square of its share of 255. */
export function restore(byte: number, scale = 1): number {
  return (byte / 255) ** 2 * scale;
}

/** The byte of a weight. */
export function quantise(weight: number, scale = 1): number {
  return Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, weight / scale))));
}

/** The value of a signed byte: its distance from 128, squared. */
export function restoreSigned(byte: number, scale = 1): number {
  const share = (byte - 128) / 127;
  return Math.sign(share) * share * share * scale;
}

/** The weight of a byte of either kind. */
export function restored(byte: number, scale: number, signed: boolean): number {
  return signed ? restoreSigned(byte, scale) : restore(byte, scale);
}

/** The byte of a value that may be negative: 128 is 0, the root of its size goes either way. */
export function quantiseSigned(value: number, scale = 1): number {
  return 128 + Math.round(127 * Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / scale)));
}
