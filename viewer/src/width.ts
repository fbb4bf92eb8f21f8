// How wide an element is, followed as that changes.

import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** The width in pixels; `otherwise` until it is known. */
export function useWidth(element: { current: HTMLElement | null }, otherwise: number): number {
  const width = useSignal(otherwise);
  useLayoutEffect(() => {
    const watched = element.current;
    if (!watched || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(() => (width.value = watched.clientWidth));
    observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  return width.value;
}
