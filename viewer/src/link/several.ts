// Several heads of a layer at once, each with its colour, and the sentences between which lines are drawn.

import { effect, signal } from "@preact/signals";
import { gridOf } from "../cells";
import type { Grid } from "../grid";
import type { Axis } from "../payload";
import * as store from "../store";

/** One head with its matrix. */
export interface HeadGrid {
  head: number;
  grid: Grid;
}

/** The heads that are drawn together, once they have been unpacked; null: the head of the page alone. */
export const several = signal<HeadGrid[] | null>(null);

let turn = 0;

effect(() => {
  const [shown, wanted] = [store.payload.value ? store.current.value : null, store.lineHeads.value];
  const asked = [store.runIndex.value, store.example.value, store.quantity.value, store.frame.value] as const;
  const now = ++turn;
  const heads = wanted.filter((head) => head < (shown?.heads ?? 0));
  if (!shown || heads.length === 0 || store.view.value !== "lines" || !single()) {
    several.value = null;
    return;
  }
  const [run, example, quantity, frame] = asked;
  Promise.all(heads.map(async (head) => ({ head, grid: await gridOf(run, example, shown, head, quantity, frame) }))).then(
    (found) => now === turn && (several.value = found),
    () => now === turn && (several.value = null),
  );
});

/** Whether one run alone is in sight: a difference has one set of lines. */
export function single(): boolean {
  return store.compare.value === "a" || store.compare.value === "b";
}

/** Show a head beside the others, or take it away; the first press begins with that head alone. */
export function toggleHead(head: number): void {
  const now = store.lineHeads.value;
  store.lineHeads.value = now.includes(head) ? now.filter((each) => each !== head) : [...now, head].sort((one, other) => one - other);
}

export function allHeads(): void {
  const count = store.current.value?.heads ?? 0;
  store.lineHeads.value = store.lineHeads.value.length >= count ? [] : Array.from({ length: count }, (_, head) => head);
}

/** The colour of a head, as a variable of the page: eight, and then again with dashes. */
export function colourOf(head: number): string {
  return `var(--c${(head % 8) + 1})`;
}

export function dashOf(head: number): string | undefined {
  return head % 16 >= 8 ? "5 3" : undefined;
}

/**
 * Which sentence each place belongs to: a special token inside a text ends one, as [SEP] and </s> do. Null where there is one
 * sentence alone.
 */
export function sentences(axis: Axis | null): number[] | null {
  if (axis?.kind !== "text") return null;
  const special = new Set(axis.special);
  const found: number[] = [];
  let [number, words] = [0, 0];
  for (let place = 0; place < axis.length; place += 1) {
    if (!special.has(place) && found.length > 0 && special.has(place - 1) && words > 0) [number, words] = [number + 1, 0];
    if (!special.has(place)) words += 1;
    found.push(number);
  }
  return number > 0 ? found : null;
}

/** "A", "B", "C". */
export function letter(sentence: number): string {
  return String.fromCharCode(65 + sentence);
}

/** More sentences than this are not told apart by a choice of pairs. */
const MOST = 4;

/** The pairs that a reader can choose: from one sentence to another, where either axis has several. */
export function sentencePairs(queries: Axis | null, keys: Axis | null): [number, number][] {
  const [down, across] = [sentences(queries), sentences(keys)];
  if (!down && !across) return [];
  const count = (of: number[] | null) => Math.min(MOST, (of?.at(-1) ?? 0) + 1);
  return Array.from({ length: count(down) }, (_, from) => Array.from({ length: count(across) }, (_, to): [number, number] => [from, to])).flat();
}

/** Whether a line is between the sentences that were chosen. */
export function between(queries: Axis, keys: Axis): (query: number, key: number) => boolean {
  const pair = store.sentencePair.value;
  const [down, across] = [sentences(queries), sentences(keys)];
  if (!pair || (!down && !across)) return () => true;
  return (query, key) => (down?.[query] ?? 0) === pair[0] && (across?.[key] ?? 0) === pair[1];
}
