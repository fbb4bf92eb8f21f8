// Matrices of which a page holds only a part: the strongest keys of each query, or a small picture.

import { DenseGrid } from "./dense";

/** The strongest keys of each query; of all other cells nothing is known but that they are smaller. */
export function sparse(rows: number, columns: number, keys: ArrayLike<number>, weights: ArrayLike<number>, scale = 1, signed = false): DenseGrid {
  const bytes = new Uint8Array(rows * columns).fill(signed ? 128 : 0);
  const there = new Uint8Array(rows * columns);
  const count = keys.length / rows;
  for (let at = 0; at < keys.length; at += 1) {
    const cell = Math.floor(at / count) * columns + keys[at]!;
    bytes[cell] = there[cell] && !signed ? Math.max(bytes[cell]!, weights[at]!) : weights[at]!;
    there[cell] = 1;
  }
  return new DenseGrid({ rows, columns, bytes, there, scale, signed, extent: "top" });
}

/** A small picture stretched to the size of its matrix: every cell shows the largest of those around it. */
export function thumbnail(rows: number, columns: number, small: Uint8Array, height: number, width: number, scale = 1, signed = false): DenseGrid {
  const bytes = new Uint8Array(rows * columns);
  const across = Int32Array.from({ length: columns }, (_, column) => block(column, columns, width));
  for (let row = 0; row < rows; row += 1) {
    const line = block(row, rows, height) * width;
    for (let column = 0; column < columns; column += 1) bytes[row * columns + column] = small[line + across[column]!]!;
  }
  const there = height === rows && width === columns ? null : new Uint8Array(rows * columns);
  return new DenseGrid({ rows, columns, bytes, there, scale, signed, extent: there ? "thumbnail" : "all" });
}

/** The block in which a place lies where `length` places make `count` blocks, as Python's quantise.py cuts them. */
export function block(place: number, length: number, count: number): number {
  return Math.floor(((place + 1) * count - 1) / length);
}

/** Nothing was kept of this matrix. */
export function nothing(rows: number, columns: number): DenseGrid {
  return new DenseGrid({ rows, columns, bytes: new Uint8Array(rows * columns), there: new Uint8Array(rows * columns), extent: "nothing" });
}
