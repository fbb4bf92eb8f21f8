// Small pictures of matrices: a thumbnail brought to any size by maximum, so that a stripe of one cell stays visible.

import { quantise, quantiseSigned, restored } from "../grid";
import { farther } from "../grids/dense";
import type { Attention, Ref } from "../payload";
import type { Head } from "../store";

/** A matrix of bytes, row by row. */
export interface Picture {
  bytes: Uint8Array;
  rows: number;
  columns: number;
  /** Bytes go either way from 128. */
  signed?: boolean;
}

/** The pictures of all heads of an attention, the mean last: its thumbnails, or its weights at a moment of training. */
export interface Pictures {
  bytes: Uint8Array;
  rows: number;
  columns: number;
  count: number;
  signed?: boolean;
}

/** Where the pictures of an attention are; null where none was recorded. */
export function sourceOf(attention: Attention, filmed: Ref | undefined): Ref | null {
  return filmed ?? attention.thumbnails;
}

/** One picture of many. Film has no mean of its own, so it is made here. */
export function pick(all: Pictures, head: Head): Picture {
  const { bytes, rows, columns, count, signed } = all;
  const own = head === "mean" ? count - 1 : Math.min(head, count - 1);
  return { bytes: bytes.subarray(own * rows * columns, (own + 1) * rows * columns), rows, columns, signed };
}

/** Heads and, after them, their mean, from heads alone. */
export function withMean(bytes: Uint8Array, heads: number, rows: number, columns: number, signed = false): Pictures {
  const size = rows * columns;
  const all = new Uint8Array((heads + 1) * size);
  all.set(bytes);
  for (let at = 0; at < size; at += 1) {
    let sum = 0;
    for (let head = 0; head < heads; head += 1) sum += restored(bytes[head * size + at]!, 1, signed);
    all[heads * size + at] = (signed ? quantiseSigned : quantise)(sum / heads);
  }
  return { bytes: all, rows, columns, count: heads + 1, signed };
}

/** Keys down and queries across. */
export function flip(picture: Picture): Picture {
  const { rows, columns } = picture;
  const bytes = new Uint8Array(rows * columns);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) bytes[column * rows + row] = picture.bytes[row * columns + column]!;
  }
  return { bytes, rows: columns, columns: rows, signed: picture.signed };
}

/** A picture in so many pixels: each is the largest of the cells that it covers, or the one cell that covers it. */
export function resize(picture: Picture, rows: number, columns: number): Picture {
  const bytes = new Uint8Array(rows * columns);
  const [tops, lefts] = [cuts(picture.rows, rows), cuts(picture.columns, columns)];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      bytes[row * columns + column] = largest(picture, tops[row]!, lefts[column]!);
    }
  }
  return { bytes, rows, columns, signed: picture.signed };
}

/** For each pixel the first cell that it covers, and one past the last; where cells are larger, the one under its middle. */
function cuts(cells: number, pixels: number): [number, number][] {
  return Array.from({ length: pixels }, (_, pixel) => {
    const under = Math.floor(((pixel + 0.5) * cells) / pixels);
    if (cells <= pixels) return [under, under + 1];
    const first = Math.floor((pixel * cells) / pixels);
    return [first, Math.max(first + 1, Math.ceil(((pixel + 1) * cells) / pixels))];
  });
}

function largest(picture: Picture, [top, bottom]: [number, number], [left, right]: [number, number]): number {
  let found = picture.signed ? 128 : 0;
  for (let row = top; row < bottom; row += 1) {
    for (let column = left; column < right; column += 1) {
      const byte = picture.bytes[row * picture.columns + column]!;
      found = picture.signed ? farther(found, byte) : Math.max(found, byte);
    }
  }
  return found;
}

/** Bytes on another scale: 255 stood for the weight `from` and shall stand for `to`. Weights are the squares of bytes. */
export function rescale(picture: Picture, from: number, to: number): Picture {
  if (from === to) return picture;
  const factor = Math.sqrt(from / to);
  const stretched = (byte: number) => (picture.signed ? 128 + Math.max(-127, Math.min(127, Math.round((byte - 128) * factor))) : Math.min(255, Math.round(byte * factor)));
  return { ...picture, bytes: picture.bytes.map(stretched) };
}

/** The largest weight of a picture. */
export function peak(picture: Picture, scale: number): number {
  const signed = picture.signed ?? false;
  const most = picture.bytes.reduce((so, byte) => (signed ? farther(so, byte) : Math.max(so, byte)), signed ? 128 : 0);
  return Math.abs(restored(most, scale, signed));
}
