// Painting a matrix: only what is in sight, at the level where a cell is at least a pixel, through a table of colours.
//
// Cost is bounded by the window and never by the matrix: cells of a level go into one reused buffer, are reduced by maximum
// along an axis that is longer than the other, become pixels in one reused image, and go to the canvas in one drawing.

import { type Grid, quantise, quantiseSigned, restored, type Shrink } from "./grid";
import { farther } from "./grids/dense";
import type { Window } from "./store";

/** What is painted: `down` and `across` are the cells of a level, in blocks of 2^`high` rows and 2^`wide` columns. */
export interface Plan {
  level: number;
  /** How often rows and columns are halved in all, the level included. */
  high: number;
  wide: number;
  firstRow: number;
  firstColumn: number;
  rows: number;
  columns: number;
}

/** More cells than this are never read for one painting: a coarser level is taken instead. */
const MOST = 1 << 21;

/** The level, and the further reduction along each axis, at which a cell covers at least one pixel. */
export function plan(grid: Grid, window: Window, height: number, width: number): Plan {
  const high = halvings(window[2] - window[0], height);
  const wide = halvings(window[3] - window[1], width);
  let level = Math.min(high, wide, grid.levels.length - 1);
  while (level < grid.levels.length - 1 && cells(window, level) > MOST) level += 1;
  const [down, across] = [Math.max(high, level), Math.max(wide, level)];
  const [firstRow, firstColumn] = [Math.floor(window[0]) >> down, Math.floor(window[1]) >> across];
  return {
    level,
    high: down,
    wide: across,
    firstRow,
    firstColumn,
    rows: Math.ceil(Math.min(grid.rows, Math.ceil(window[2])) / 2 ** down) - firstRow,
    columns: Math.ceil(Math.min(grid.columns, Math.ceil(window[3])) / 2 ** across) - firstColumn,
  };
}

function halvings(cells: number, pixels: number): number {
  return Math.max(0, Math.ceil(Math.log2(cells / Math.max(1, pixels)) - 1e-9));
}

function cells(window: Window, level: number): number {
  return ((window[2] - window[0]) / 2 ** level + 2) * ((window[3] - window[1]) / 2 ** level + 2);
}

/** Reads the bytes of a plan, row by row, into memory that its next reading uses again. */
export class Reader {
  private read = new Uint8Array(0);
  private reduced = new Uint8Array(0);
  private sums = new Float32Array(0);

  /** `complete` is false while tiles are missing. */
  bytes(grid: Grid, wanted: Plan, by: Shrink = "maximum"): { bytes: Uint8Array; complete: boolean } {
    const { level, high, wide, rows, columns } = wanted;
    const size = grid.levels[level]!;
    const [down, across] = [high - level, wide - level];
    const [firstRow, firstColumn] = [wanted.firstRow << down, wanted.firstColumn << across];
    const readRows = Math.min(size.rows - firstRow, rows << down);
    const readColumns = Math.min(size.columns - firstColumn, columns << across);
    if (this.read.length < readRows * readColumns) this.read = new Uint8Array(readRows * readColumns);
    const complete = grid.fill(level, firstRow, firstColumn, readRows, readColumns, this.read, by);
    if (down === 0 && across === 0) return { bytes: this.read, complete };
    if (this.reduced.length < rows * columns) this.reduced = new Uint8Array(rows * columns);
    if (by === "mean") return { bytes: this.averaged(grid.signed, wanted, readRows, readColumns), complete };
    this.reduced.fill(grid.signed ? 128 : 0, 0, rows * columns);
    for (let row = 0; row < readRows; row += 1) {
      const [from, line] = [row * readColumns, (row >> down) * columns];
      reduceLine(this.read.subarray(from, from + readColumns), across, this.reduced.subarray(line, line + columns), grid.signed);
    }
    return { bytes: this.reduced, complete };
  }

  /** The mean of the weights of the cells that were read, in blocks; at the end of the matrix of those that are there. */
  private averaged(signed: boolean, wanted: Plan, readRows: number, readColumns: number): Uint8Array {
    const [down, across] = [wanted.high - wanted.level, wanted.wide - wanted.level];
    const size = wanted.rows * wanted.columns;
    if (this.sums.length < 2 * size) this.sums = new Float32Array(2 * size);
    const weights = WEIGHTS[Number(signed)]!;
    this.sums.fill(0, 0, 2 * size);
    for (let row = 0; row < readRows; row += 1) {
      const line = (row >> down) * wanted.columns;
      for (let column = 0; column < readColumns; column += 1) {
        const at = line + (column >> across);
        this.sums[at]! += weights[this.read[row * readColumns + column]!]!;
        this.sums[size + at]! += 1;
      }
    }
    for (let at = 0; at < size; at += 1) {
      const mean = this.sums[at]! / Math.max(1, this.sums[size + at]!);
      this.reduced[at] = signed ? quantiseSigned(mean) : quantise(mean);
    }
    return this.reduced;
  }
}

const WEIGHTS = [false, true].map((signed) => Float32Array.from({ length: 256 }, (_, byte) => restored(byte, 1, signed)));

/** The maximum of 2^`across` cells each, over what is there already. */
function reduceLine(cells: Uint8Array, across: number, into: Uint8Array, signed: boolean): void {
  for (let column = 0; column < cells.length; column += 1) {
    const [byte, at] = [cells[column]!, column >> across];
    if (signed) into[at] = farther(into[at]!, byte);
    else if (byte > into[at]!) into[at] = byte;
  }
}

/** One byte for each block of a plan, 0 where all of it is hidden; null where nothing is. */
export type Shown = (plan: Plan) => Uint8Array | null;

interface Surface {
  canvas: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  image: ImageData;
  words: Uint32Array;
}

let surface: Surface | null = null;
const reader = new Reader();

/** The buffer that every painting goes through; it only ever grows. */
function prepared(width: number, height: number): Surface {
  if (surface && surface.image.width >= width && surface.image.height >= height) return surface;
  const [wide, high] = [Math.max(width, surface?.image.width ?? 0), Math.max(height, surface?.image.height ?? 0)];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [wide, high];
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(wide, high);
  surface = { canvas, context, image, words: new Uint32Array(image.data.buffer) };
  return surface;
}

export interface Target {
  context: CanvasRenderingContext2D;
  /** Pixels of the device. */
  width: number;
  height: number;
  /** Only this part of the width, from and to, for a swipe; left out: all. */
  from?: number;
  to?: number;
  transposed: boolean;
  /** How cells are put together; left out: by maximum. */
  shrink?: Shrink;
}

/** Paint what is in `window` over the whole target; hidden blocks stay clear, so what lies under them shows. */
export function paint(grid: Grid, window: Window, colours: Uint32Array, target: Target, shown: Shown): { plan: Plan; complete: boolean } {
  const [high, wide] = target.transposed ? [target.width, target.height] : [target.height, target.width];
  const wanted = plan(grid, window, high, wide);
  const { bytes, complete } = reader.bytes(grid, wanted, target.shrink);
  const [width, height] = target.transposed ? [wanted.rows, wanted.columns] : [wanted.columns, wanted.rows];
  const buffer = prepared(width, height);
  colour(bytes, wanted, colours, buffer, target.transposed);
  clear(wanted, shown(wanted), buffer, target.transposed);
  buffer.context.putImageData(buffer.image, 0, 0, 0, 0, width, height);
  draw(window, wanted, buffer, target);
  return { plan: wanted, complete };
}

function colour(bytes: Uint8Array, { rows, columns }: Plan, colours: Uint32Array, { words, image }: Surface, transposed: boolean): void {
  for (let row = 0; row < rows; row += 1) {
    const from = row * columns;
    const [start, stride] = transposed ? [row, image.width] : [row * image.width, 1];
    for (let column = 0; column < columns; column += 1) words[start + column * stride] = colours[bytes[from + column]!]!;
  }
}

/** Hidden blocks become clear. */
function clear({ rows, columns }: Plan, shown: Uint8Array | null, { words, image }: Surface, transposed: boolean): void {
  for (let at = 0; shown && at < rows * columns; at += 1) {
    if (shown[at]) continue;
    const [row, column] = [Math.floor(at / columns), at % columns];
    words[transposed ? column * image.width + row : row * image.width + column] = 0;
  }
}

/** One drawing without smoothing, clipped to the part of a swipe where there is one. */
function draw(window: Window, wanted: Plan, buffer: Surface, target: Target): void {
  const { context, width, height, transposed, from = 0, to = width } = target;
  const rowPixels = (transposed ? width : height) / (window[2] - window[0]);
  const columnPixels = (transposed ? height : width) / (window[3] - window[1]);
  const down = ((wanted.firstRow << wanted.high) - window[0]) * rowPixels;
  const across = ((wanted.firstColumn << wanted.wide) - window[1]) * columnPixels;
  const tall = wanted.rows * 2 ** wanted.high * rowPixels;
  const broad = wanted.columns * 2 ** wanted.wide * columnPixels;
  context.save();
  context.beginPath();
  context.rect(from, 0, to - from, height);
  context.clip();
  context.imageSmoothingEnabled = false;
  const [x, y, w, h] = transposed ? [down, across, tall, broad] : [across, down, broad, tall];
  const [sourceWidth, sourceHeight] = transposed ? [wanted.rows, wanted.columns] : [wanted.columns, wanted.rows];
  context.drawImage(buffer.canvas, 0, 0, sourceWidth, sourceHeight, x, y, w, h);
  context.restore();
}
