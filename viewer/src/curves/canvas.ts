// A canvas as wide as its place in the page and as sharp as the screen.

import { useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Pen } from "./draw";

/** The width in CSS pixels of the element that `ref` is given to. */
export function useWidth<Kind extends HTMLElement>(): { ref: { current: Kind | null }; width: number } {
  const ref = useRef<Kind>(null);
  const width = useSignal(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    width.value = element.clientWidth;
    if (typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(() => (width.value = element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width: width.value };
}

/** Make room for `width` x `height` CSS pixels; the pen then counts in them. Null where there is nothing to draw with. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): Pen | null {
  const density = typeof devicePixelRatio === "number" ? devicePixelRatio : 1;
  const [wide, tall] = [Math.max(1, Math.round(width * density)), Math.max(1, Math.round(height * density))];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== tall) canvas.height = tall;
  const pen = canvas.getContext("2d");
  pen?.setTransform(density, 0, 0, density, 0, 0);
  pen?.clearRect(0, 0, width, height);
  return pen;
}
