// The matrix that is in sight: found in the page or at the server, joined with the other run's where two are compared.

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { align } from "./align";
import type { Grid } from "./grid";
import { difference, moved } from "./grids/difference";
import { special } from "./labels";
import { find } from "./matrices";
import type { Attention, Axis, Payload } from "./payload";
import * as store from "./store";
import type { Head, Quantity } from "./store";

export { allowed } from "./mask";

const chosenGrid = signal<Grid | null>(null);
const otherGrid = signal<Grid | null>(null);
/** What the store selects now: a difference where one is asked for; null while it is unpacked. */
export const grid: ReadonlySignal<Grid | null> = chosenGrid;
/** B's matrix at A's places, while the two are swiped over one another. */
export const swiped: ReadonlySignal<Grid | null> = otherGrid;
/** Why there is no matrix, in words. */
export const trouble = signal<string | null>(null);

/** Cells that are kept at once, in all grids together. */
const KEPT = 160e6;
let cache = new Map<string, { grid: Promise<Grid>; cells: number }>();
let cachedFor: Payload | null = null;

/** One matrix, unpacked once and kept while there is room. */
export function gridOf(
  run: number,
  example: number,
  attention: Attention,
  head: Head,
  quantity: Quantity,
  frame: number | null,
): Promise<Grid> {
  if (cachedFor !== store.payload.peek()) [cache, cachedFor] = [new Map(), store.payload.peek()];
  const name = [run, example, attention.id, head, quantity, frame].join("\n");
  const found = cache.get(name) ?? { grid: find({ run, example, attention, head, quantity, frame }), cells: cellsOf(attention) };
  cache.delete(name);
  cache.set(name, found);
  found.grid.catch(() => cache.delete(name));
  forget();
  return found.grid;
}

function cellsOf(attention: Attention): number {
  return attention.queries * attention.keys;
}

function forget(): void {
  let total = [...cache.values()].reduce((sum, each) => sum + each.cells, 0);
  for (const [name, each] of cache) {
    if (total <= KEPT || cache.size === 1) return;
    cache.delete(name);
    total -= each.cells;
  }
}

/** The values of a row, zero where nothing is known; null where the row was not recorded or is on its way. */
export function rowOf(from: Grid, row: number): Float32Array | null {
  if (row < 0 || row >= from.rows || !from.rowKnown(row)) return null;
  return Float32Array.from({ length: from.columns }, (_, column) => from.value(row, column)?.value ?? 0);
}

/** The keys that a query looks at most, the strongest first; where cells are signed, the largest either way. */
export function strongest(from: Grid, row: number, count: number): { key: number; value: number; exact: boolean }[] {
  const hidden = store.hideSpecial.value ? special(store.keyAxis.value) : new Set<number>();
  const found: { key: number; value: number; exact: boolean }[] = [];
  if (row < 0 || row >= from.rows || count <= 0) return found;
  for (let key = 0; key < from.columns; key += 1) {
    if (hidden.has(key)) continue;
    const cell = from.value(row, key);
    if (!cell) continue;
    const size = Math.abs(cell.value);
    if (found.length === count && Math.abs(found[count - 1]!.value) >= size) continue;
    let at = found.length;
    while (at > 0 && Math.abs(found[at - 1]!.value) < size) at -= 1;
    found.splice(at, 0, { key, ...cell });
    if (found.length > count) found.pop();
  }
  return found;
}

function axes(example: { axes: Record<string, Axis> }, attention: Attention): [Axis, Axis] {
  return [example.axes[attention.query]!, example.axes[attention.key]!];
}

/** B's head for A's: the same number where it has so many. */
function like(head: Head, attention: Attention): Head {
  return head !== "mean" && head >= attention.heads ? "mean" : head;
}

async function both(first: Attention): Promise<[Grid, Grid | null]> {
  const [mode, example, head, quantity, frame] = [
    store.compare.peek(),
    store.example.peek(),
    store.head.peek(),
    store.quantity.peek(),
    store.frame.peek(),
  ];
  const second = store.other.peek();
  const here = await gridOf(store.runIndex.peek(), example, first, like(head, first), quantity, frame);
  if (!second || mode === "a" || mode === "b") return [here, null];
  const [queries, keys] = axes(store.currentExample.peek(), first);
  const [otherQueries, otherKeys] = axes(second.example, second.attention);
  const there = await gridOf(1, example, second.attention, like(head, second.attention), quantity, frame);
  const [down, across] = [align(queries, otherQueries), align(keys, otherKeys)];
  return mode === "difference" ? [difference(here, there, down, across), null] : [here, moved(here, there, down, across)];
}

let latest = 0;
let shownFor: Attention | null = null;

/** Follow the store; the last selection wins however long the others took. */
effect(() => {
  if (!store.payload.value) return;
  const shown = store.current.value;
  const turn = ++latest;
  for (const each of [store.head, store.quantity, store.frame, store.compare, store.other, store.example]) void each.value;
  if (shown !== shownFor) [chosenGrid.value, otherGrid.value] = [null, null];
  shownFor = shown;
  trouble.value = null;
  if (!shown) return;
  both(shown).then(
    ([made, beside]) => {
      if (turn === latest) [chosenGrid.value, otherGrid.value] = [made, beside];
    },
    (error: Error) => {
      if (turn === latest) [chosenGrid.value, otherGrid.value, trouble.value] = [null, null, error.message];
    },
  );
});
