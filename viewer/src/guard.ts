// A selection that another attention or example has no place for is dropped: no view has to ask whether it still holds.

import { effect } from "@preact/signals";
import * as store from "./store";

/** Keep the selection within what is shown, from now on; returns how to stop. */
export function guard(): () => void {
  return effect(() => {
    const shown = store.current.value;
    if (!shown) return;
    if ((store.query.value ?? 0) >= shown.queries) store.query.value = null;
    if ((store.key.value ?? 0) >= shown.keys) store.key.value = null;
    if ((store.range.value?.[1] ?? 0) > shown.queries) store.range.value = null;
    if ((store.frame.value ?? -1) >= store.run.value.training.length) store.frame.value = null;
    const window = store.visible.value;
    if (window && (window[2] > shown.queries || window[3] > shown.keys)) store.visible.value = null;
  });
}
