// What of the matrix is in sight, and how a reader moves it. Everything is written to store.visible.

import { batch, computed } from "@preact/signals";
import * as store from "../store";
import type { Window } from "../store";

/** Nobody looks closer than this many cells a side. */
const CLOSEST = 4;

/** All of the matrix that is selected. */
export const whole = computed<Window>(() => {
  const shown = store.current.value;
  return shown ? [0, 0, shown.queries, shown.keys] : [0, 0, 1, 1];
});

/** The window in sight: the brushed queries where there are some, else what was zoomed to, else all. */
export const inSight = computed<Window>(() => {
  const all = whole.value;
  const window = store.visible.value ? fitted(store.visible.value, all) : all;
  const range = store.range.value;
  if (!range || range[0] >= all[2]) return window;
  return fitted([range[0], window[1], Math.max(range[0] + 1, range[1]), window[3]], all);
});

export const zoomed = computed(() => inSight.value.some((edge, at) => edge !== whole.value[at]));

/** A window that lies within the matrix, as large as it was where that is possible. */
export function fitted(window: Window, all: Window): Window {
  const [firstRow, endRow] = fit(window[0], window[2], all[2]);
  const [firstColumn, endColumn] = fit(window[1], window[3], all[3]);
  return [firstRow, firstColumn, endRow, endColumn];
}

function fit(first: number, end: number, length: number): [number, number] {
  const span = Math.min(length, Math.max(Math.min(1, length), end - first));
  const start = Math.min(Math.max(0, first), length - span);
  return [start, start + span];
}

/** Show a window from now on; all of the matrix is no window. */
export function show(window: Window): void {
  const next = fitted(window, whole.value);
  batch(() => {
    store.range.value = null;
    store.visible.value = next.every((edge, at) => edge === whole.value[at]) ? null : next;
  });
}

/** Look closer (a factor above 1) or farther; the place under `down` and `across`, shares of the window, stays where it is. */
export function zoom(factor: number, down = 0.5, across = 0.5): void {
  const [row, column, endRow, endColumn] = inSight.value;
  const all = whole.value;
  const [firstRow, lastRow] = scaled(row, endRow, factor, down, all[2]);
  const [firstColumn, lastColumn] = scaled(column, endColumn, factor, across, all[3]);
  show([firstRow, firstColumn, lastRow, lastColumn]);
}

function scaled(first: number, end: number, factor: number, share: number, length: number): [number, number] {
  const span = Math.min(length, Math.max(Math.min(CLOSEST, length), (end - first) / factor));
  const start = first + share * (end - first - span);
  return [start, start + span];
}

/** Move the window by so many cells. */
export function pan(rows: number, columns: number): void {
  const [row, column, endRow, endColumn] = inSight.value;
  show([row + rows, column + columns, endRow + rows, endColumn + columns]);
}

export function showAll(): void {
  show(whole.value);
}

/** Bring a cell into sight if it is not: the window moves no farther than it must. */
export function reveal(row: number | null, column: number | null): void {
  const [top, left, bottom, right] = inSight.value;
  const down = row === null ? 0 : shift(row, top, bottom);
  const across = column === null ? 0 : shift(column, left, right);
  if (down !== 0 || across !== 0) pan(down, across);
}

function shift(place: number, first: number, end: number): number {
  if (place < first) return place - first;
  return place + 1 > end ? place + 1 - end : 0;
}
