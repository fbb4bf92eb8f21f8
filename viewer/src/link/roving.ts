// Many things of which one is chosen: Tab reaches the group once, arrows go from one to the next inside it.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
/** What Shift makes of a step, here as everywhere on the page. */
const FAR = 10;

/** A handler for the group's keys and a reference to it; things carry `data-place`. The focus follows the choice. */
export function useRoving(chosen: Signal<number | null>, count: number, start: number) {
  const group = useRef<HTMLDivElement>(null);
  const moved = useRef(false);
  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    group.current?.querySelector<HTMLElement>(`[data-place="${chosen.value}"]`)?.focus({ preventScroll: false });
  });
  function keyed(event: KeyboardEvent): void {
    const to = target(event, chosen.value ?? start, count);
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moved.current = true;
    chosen.value = to;
  }
  return { group, keyed };
}

function target({ key, shiftKey }: KeyboardEvent, from: number, count: number): number | null {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const step = STEPS[key];
  return step === undefined ? null : Math.min(count - 1, Math.max(0, from + (shiftKey ? FAR * step : step)));
}

/** Choose a place, or choose nothing where it was chosen already. */
export function toggle(chosen: Signal<number | null>, place: number): void {
  chosen.value = chosen.value === place ? null : place;
}
