// window.probe(query, key): what was painted for a cell and what should have been, for tests that hold the picture exactly.

import { grid } from "../cells";
import { plan, Reader } from "../paint";
import { shrink, transposed } from "../store";
import type { Painter } from "./painter";
import { inSight } from "./window";

export interface Probe {
  /** The cell's byte at the level that is drawn. */
  byte: number;
  expected: number[];
  actual: number[];
  /** The pixel of the canvas, counted in pixels of the device. */
  x: number;
  y: number;
  level: number;
  /** How often rows and columns were halved in all. */
  high: number;
  wide: number;
}

declare global {
  interface Window {
    probe?: (query: number, key: number) => Probe | null;
  }
}

/** Look at a cell; null where it has no pixel in sight. Paints first, so that nothing is pending. */
export function probing(painter: Painter, canvas: HTMLCanvasElement): (query: number, key: number) => Probe | null {
  return (query, key) => {
    const matrix = grid.peek();
    const window = inSight.peek();
    if (!matrix || query < Math.floor(window[0]) || query >= window[2] || key < Math.floor(window[1]) || key >= window[3]) return null;
    painter.paint();
    const [high, wide] = transposed.peek() ? [canvas.width, canvas.height] : [canvas.height, canvas.width];
    const wanted = plan(matrix, window, high, wide);
    const [row, column] = [query >> wanted.high, key >> wanted.wide];
    const byte = new Reader().bytes(matrix, wanted, shrink.peek()).bytes[(row - wanted.firstRow) * wanted.columns + column - wanted.firstColumn]!;
    const down = pixel(row, wanted.high, window[0], window[2], high);
    const across = pixel(column, wanted.wide, window[1], window[3], wide);
    const [x, y] = transposed.peek() ? [down, across] : [across, down];
    if (x === null || y === null) return null;
    const actual = pixelOf(canvas, x, y);
    const expected = [...new Uint8Array(painter.colours.buffer, 4 * byte, 4)];
    return { byte, expected, actual, x, y, level: wanted.level, high: wanted.high, wide: wanted.wide };
  };
}

/** The pixel in the middle of what is in sight of a block; null where so little is in sight that no pixel's centre lies in it. */
function pixel(block: number, halvings: number, first: number, end: number, pixels: number): number | null {
  const size = 2 ** halvings;
  const from = ((Math.max(first, block * size) - first) * pixels) / (end - first);
  const to = ((Math.min(end, (block + 1) * size) - first) * pixels) / (end - first);
  const found = Math.min(pixels - 1, Math.floor((from + to) / 2));
  return found + 0.5 >= from && found + 0.5 <= to ? found : null;
}

/** Read back through a canvas made for it, so that the visible one stays where it is fast to paint. */
function pixelOf(canvas: HTMLCanvasElement, x: number, y: number): number[] {
  const copy = document.createElement("canvas");
  copy.width = copy.height = 1;
  const pen = copy.getContext("2d", { willReadFrequently: true })!;
  pen.drawImage(canvas, x, y, 1, 1, 0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data];
}
