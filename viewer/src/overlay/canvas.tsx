// A canvas that keeps to its width, to the screen's pixels and to the page's colours, and is painted anew when they change.

import { useLayoutEffect, useRef } from "preact/hooks";
import { type Colours, coloursOf, theme } from "../curves/colours";

export type Paint = (context: CanvasRenderingContext2D, width: number, height: number, theme: Theme) => void;

interface CanvasProps {
  /** What the picture says. */
  label: string;
  height(width: number): number;
  paint: Paint;
  /** A click, in the canvas's own pixels. */
  choose?(x: number, y: number, width: number, height: number): void;
}

export function Canvas({ label, height, paint, choose }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef({ height, paint });
  void theme.value;
  latest.current = { height, paint };
  useLayoutEffect(() => repaint(canvas.current!, latest.current));
  useLayoutEffect(() => watched(canvas.current!, () => repaint(canvas.current!, latest.current)), []);
  function clicked(event: MouseEvent): void {
    const box = canvas.current!.getBoundingClientRect();
    choose?.(event.clientX - box.left, event.clientY - box.top, box.width, box.height);
  }
  return <canvas ref={canvas} role="img" aria-label={label} class={choose ? "choosable" : undefined} onClick={clicked} />;
}

function repaint(canvas: HTMLCanvasElement, { height, paint }: { height(width: number): number; paint: Paint }): void {
  const width = canvas.clientWidth;
  const high = height(width);
  const dense = globalThis.devicePixelRatio || 1;
  const context = width > 0 ? canvas.getContext("2d") : null;
  if (!context) return;
  canvas.style.height = `${high}px`;
  [canvas.width, canvas.height] = [Math.round(width * dense), Math.round(high * dense)];
  context.setTransform(dense, 0, 0, dense, 0, 0);
  context.clearRect(0, 0, width, high);
  paint(context, width, high, themeOf(canvas));
}

/** Call back when the width has changed; returns how to stop. */
function watched(canvas: HTMLCanvasElement, changed: () => void): () => void {
  if (typeof ResizeObserver === "undefined") return () => undefined;
  let width = canvas.clientWidth;
  const size = new ResizeObserver(() => {
    if (canvas.clientWidth !== width) changed();
    width = canvas.clientWidth;
  });
  size.observe(canvas);
  return () => size.disconnect();
}

/** The colours of the page as a canvas needs them, and those of the lines of a series. */
export interface Theme extends Colours {
  series: string[];
}

function themeOf(element: Element): Theme {
  const [style, colours] = [getComputedStyle(element), coloursOf(element)];
  const series = Array.from({ length: 8 }, (_, at) => style.getPropertyValue(`--c${at + 1}`).trim() || colours.ink);
  return { ...colours, series };
}

/** A frame that is seen on any ground: dark inside light. */
export function frame(context: CanvasRenderingContext2D, theme: Theme, x: number, y: number, width: number, height: number): void {
  context.lineWidth = 4;
  context.strokeStyle = theme.paper;
  context.strokeRect(x, y, width, height);
  context.lineWidth = 2;
  context.strokeStyle = theme.ink;
  context.strokeRect(x, y, width, height);
}
