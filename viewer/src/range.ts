// The range of the colours: which weight has the last one.

import { computed, signal } from "@preact/signals";
import { grid, swiped } from "./cells";
import { type Grid, restored } from "./grid";
import { farther } from "./grids/dense";
import * as store from "./store";
import type { Reach } from "./store";

/** More keys than this share out a weight of 1 so far that a range up to 1 would show one dark colour. */
const MANY = 64;

/** Counts up when tiles have come, so that the largest weight in sight is looked for again. */
export const arrivals = signal(0);

/** The largest weight of a matrix, from its smallest level; of signed cells the size of the farthest from 0; null: not here yet. */
export function largest(of: Grid): number | null {
  const last = of.levels.length - 1;
  const { rows, columns } = of.levels[last]!;
  const bytes = new Uint8Array(rows * columns);
  if (!of.fill(last, 0, 0, rows, columns, bytes)) return null;
  let most = of.signed ? 128 : 0;
  for (const byte of bytes) most = of.signed ? farther(most, byte) : Math.max(most, byte);
  return Math.abs(restored(most, of.scale, of.signed));
}

/** The range that was chosen, or the one that suits: up to 1 for a few tokens, else up to the largest weight. */
export const range = computed<Reach>(() => store.reach.value ?? fitting());

function fitting(): Reach {
  const [matrix, keys, queries] = [grid.value, store.keyAxis.value, store.queryAxis.value];
  if (!matrix || !keys || !queries || matrix.signed || matrix.scale !== 1) return "largest";
  const plain = [keys, queries].every((axis) => axis.kind === "text" || axis.kind === "index");
  return plain && keys.length <= MANY ? "one" : "largest";
}

/** The largest weight here; null until it is known. */
export const here = computed<number | null>(() => {
  void arrivals.value;
  const found = [grid.value, swiped.value].flatMap((each) => (each ? [largest(each)] : []));
  return found.length === 0 || found.includes(null) ? null : Math.max(...(found as number[]));
});

/** The weight with the last colour. */
export const upper = computed<number>(() => {
  const chosen = range.value;
  if (typeof chosen === "number") return chosen;
  return chosen === "one" ? 1 : here.value || (grid.value?.scale ?? 1);
});

/** What a byte is stretched by, for `place` in palette.ts. */
export function factor(of: Grid): number {
  return of.scale / upper.value;
}
