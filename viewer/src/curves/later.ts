// Things that take a moment to load, as components use them.

import { useSignal, useSignalEffect } from "@preact/signals";

/** What `load` promised for the signals that it reads; the last one stays until the next is there. */
export function useLater<Thing>(load: () => Promise<Thing> | null): Thing | null {
  const found = useSignal<Thing | null>(null);
  useSignalEffect(() => {
    let wanted = true;
    const promised = load();
    if (!promised) found.value = null;
    promised?.then((thing) => {
      if (wanted) found.value = thing;
    });
    return () => {
      wanted = false;
    };
  });
  return found.value;
}
