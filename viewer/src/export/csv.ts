// The cells in sight as a table: names of keys in the first line, names of queries in the first column.

import { allowed } from "../cells";
import type { Grid } from "../grid";
import { label } from "../labels";
import type { Attention, Axis } from "../payload";
import type { Window } from "../store";

/** More make a file that no table program opens. */
export const MOST_CELLS = 1_000_000;

/** One line for each query; a cell that may not be seen, or of which nothing is known, is empty. */
export function cellsInSight(attention: Attention, matrix: Grid, queries: Axis, keys: Axis, window: Window): string {
  const [first, end] = [Math.floor(window[0]), Math.min(matrix.rows, Math.ceil(window[2]))];
  const [left, right] = [Math.floor(window[1]), Math.min(matrix.columns, Math.ceil(window[3]))];
  const columns = Array.from({ length: right - left }, (_, at) => left + at);
  const lines = [["", ...columns.map((key) => quoted(label(keys, key)))].join(",")];
  for (let query = first; query < end; query += 1) {
    const values = columns.map((key) => (allowed(attention, query, key) ? number(matrix.value(query, key)?.value) : ""));
    lines.push([quoted(label(queries, query)), ...values].join(","));
  }
  return lines.join("\r\n") + "\r\n";
}

function number(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? "" : String(Number(value.toPrecision(7)));
}

/** A name in quotes. Table programs run what begins like a formula, so such a name gets an apostrophe in front. */
export function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
