// The cell that the pointer is at, and the crosshair: at the pointer or at the selection, whichever was moved last.

import { computed, effect, signal } from "@preact/signals";
import * as store from "../store";

export interface Place {
  query: number | null;
  key: number | null;
}

/** The cell under the pointer since it last moved over the map; null once the selection was moved by anything else. */
export const pointed = signal<{ query: number; key: number } | null>(null);

/** The crosshair. */
export const crosshair = computed<Place | null>(() => {
  const [query, key] = [store.query.value, store.key.value];
  return pointed.value ?? (query === null && key === null ? null : { query, key });
});

/** A key, a click, playback or a link moves the selection: a pointer that rests on the map must not hold the crosshair. */
effect(() => {
  for (const each of [store.query, store.key]) void each.value;
  pointed.value = null;
});
