// Painting the matrix of heads: one canvas under the cells, and only the cells that are in sight.

import { css, table } from "../palette";
import { palette, payload } from "../store";
import { picture, paint } from "./loaded";
import type { Cell } from "./order";
import { numberOf, shown, type Statistic } from "./statistics";

/** What is in sight: cells of `size` pixels, moved by how far the matrix is scrolled. */
export interface Surface {
  cells: Cell[];
  size: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** The lowest and the highest of the shown statistic: the ends of the palette. */
export interface Span {
  statistic: Statistic;
  low: number;
  high: number;
}

/** Narrower cells have no room for a number. */
const NUMBERED = 34;

export function paintHeads(canvas: HTMLCanvasElement, surface: Surface, span: Span | null): void {
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(surface.width * ratio), Math.round(surface.height * ratio)];
  [canvas.style.width, canvas.style.height] = [`${surface.width}px`, `${surface.height}px`];
  const context = canvas.getContext("2d");
  if (!context) return;
  const colours = span ? table(payload.value, palette.value) : null;
  for (const cell of surface.cells) {
    const left = Math.round((cell.column * surface.size - surface.left) * ratio);
    const top = Math.round((cell.row * surface.size - surface.top) * ratio);
    const side = Math.max(1, Math.round((surface.size - 2) * ratio));
    if (span && colours) paintNumber(context, cell, span, colours, { left, top, side, ratio });
    else paintPicture(context, cell, left, top, side);
  }
}

function paintPicture(context: CanvasRenderingContext2D, cell: Cell, left: number, top: number, side: number): void {
  const found = picture(cell.attention, cell.head);
  if (found) paint(context, found, left, top, side, side);
}

interface Spot {
  left: number;
  top: number;
  side: number;
  ratio: number;
}

function paintNumber(context: CanvasRenderingContext2D, cell: Cell, span: Span, colours: Uint8Array, spot: Spot): void {
  const value = numberOf(cell.attention, cell.head, span.statistic);
  if (value === null) return;
  const at = shade(value, span);
  context.fillStyle = css(colours, at);
  context.fillRect(spot.left, spot.top, spot.side, spot.side);
  if (spot.side < NUMBERED * spot.ratio) return;
  context.fillStyle = light(colours, at) ? "#000" : "#fff";
  context.font = `${11 * spot.ratio}px system-ui, sans-serif`;
  [context.textAlign, context.textBaseline] = ["center", "middle"];
  context.fillText(shown(value), spot.left + spot.side / 2, spot.top + spot.side / 2, spot.side - 4);
}

/** Which of 256 colours a number has between the lowest and the highest. */
export function shade(value: number, span: Span): number {
  if (span.high <= span.low) return 128;
  return Math.round((255 * (Math.min(span.high, Math.max(span.low, value)) - span.low)) / (span.high - span.low));
}

/** Whether black is easier to read on a colour than white: its luminance, as the accessibility guidelines define it. */
export function light(colours: Uint8Array, at: number): boolean {
  const [red, green, blue] = [0, 1, 2].map((part) => linear(colours[3 * at + part]! / 255));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! > 0.179;
}

function linear(part: number): number {
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}
