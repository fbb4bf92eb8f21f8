// The crosshair and the brush of a curve: what keys and pointers make of them.

import { batch } from "@preact/signals";
import { reveal } from "../heatmap/window";
import { current, key, query, range, visible } from "../store";

export type Along = "query" | "key";

export function crossOf(along: Along): number | null {
  return along === "key" ? key.value : query.value;
}

export function moveTo(along: Along, place: number): void {
  (along === "key" ? key : query).value = place;
  reveal(along === "query" ? place : null, along === "key" ? place : null);
}

/** What is brushed: rows by `range`, columns by what the heat map has in sight. */
export function brushOf(along: Along): [number, number] | null {
  return along === "query" ? range.value : null;
}

/** Rows are selected; columns come into sight, since the store has no selection of keys. */
export function brush(along: Along, first: number, end: number): void {
  const shown = current.value;
  if (!shown) return;
  if (along === "query") range.value = [first, end];
  else {
    const [from, , to] = visible.value ?? [0, 0, shown.queries, shown.keys];
    visible.value = [from, first, to, end];
  }
}

/** All rows again, or all columns. */
export function clear(along: Along): void {
  const shown = current.value;
  if (along === "query") range.value = null;
  else if (visible.value && shown) visible.value = [visible.value[0], 0, visible.value[2], shown.keys];
}

/** Where a key leads from a place; null for a key that leads nowhere. */
export function led(name: string, from: number, count: number): number | null {
  const to = { ArrowLeft: from - 1, ArrowRight: from + 1, PageUp: from - 10, PageDown: from + 10, Home: 0, End: count - 1 }[name];
  return to === undefined ? null : Math.min(count - 1, Math.max(0, to));
}

/** A key on a focused curve; true where it was used. `anchor` is where a range was begun. */
export function keyed(event: KeyboardEvent, along: Along, count: number, anchor: { current: number | null }): boolean {
  if (event.key === "Escape" && along === "query" && range.value) {
    clear(along);
    anchor.current = null;
    return true;
  }
  const from = crossOf(along);
  const to = led(event.key, from ?? (event.key === "ArrowLeft" ? count : -1), count);
  if (to === null) return false;
  batch(() => {
    if (event.shiftKey) {
      anchor.current ??= from ?? to;
      brush(along, Math.min(anchor.current, to), Math.max(anchor.current, to) + 1);
    } else anchor.current = null;
    moveTo(along, to);
  });
  return true;
}
