// What of the matrix of heads is in sight, and how it is scrolled.

import { useSignal, type Signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import type { Arranged, Cell } from "./order";
import type { Surface } from "./surface";

/** Room at the left for layers and above for heads. */
export const MARGIN = { left: 30, top: 26 };

/** Heads in their order, and the side of a cell in pixels. */
export interface Given {
  arranged: Arranged;
  size: number;
}

interface Seen {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Cells that are at least partly in the window. */
export function inSight({ arranged, size }: Given, window: Seen): Surface {
  const [width, height] = [Math.max(0, window.width - MARGIN.left), Math.max(0, window.height - MARGIN.top)];
  const cells = arranged.cells.filter(
    (cell) =>
      (cell.row + 1) * size > window.top &&
      cell.row * size < window.top + height &&
      (cell.column + 1) * size > window.left &&
      cell.column * size < window.left + width,
  );
  return { cells, size, left: window.left, top: window.top, width, height };
}

/** How far an element is scrolled and how large it is, followed as both change. */
export function useWindow(element: { current: HTMLElement | null }): Signal<Seen> {
  const seen = useSignal<Seen>({ left: 0, top: 0, width: 1200, height: 800 });
  useLayoutEffect(() => {
    const watched = element.current;
    if (!watched || typeof ResizeObserver === "undefined") return;
    const look = () => {
      seen.value = { left: watched.scrollLeft, top: watched.scrollTop, width: watched.clientWidth, height: watched.clientHeight };
    };
    const observer = new ResizeObserver(look);
    observer.observe(watched);
    watched.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      watched.removeEventListener("scroll", look);
    };
  }, []);
  return seen;
}

/** Scroll the matrix, and never the page, so that a cell is in it. */
export function reveal(element: HTMLElement | null, cell: Cell, size: number): void {
  if (!element) return;
  element.scrollTop = near(element.scrollTop, element.clientHeight - MARGIN.top, cell.row * size, size);
  element.scrollLeft = near(element.scrollLeft, element.clientWidth - MARGIN.left, cell.column * size, size);
}

function near(scroll: number, room: number, start: number, length: number): number {
  return Math.max(start + length - room, Math.min(scroll, start));
}
