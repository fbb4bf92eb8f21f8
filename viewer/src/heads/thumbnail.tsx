// A small picture of one head, or of the mean of all.

import { useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Attention } from "../payload";
import type { Head } from "../store";
import { useSignalOf } from "./following";
import { paint, picture } from "./loaded";
import { headSentence } from "./statistics";

interface Shown {
  attention: Attention;
  head: Head;
  size: number;
}

export function Thumbnail({ attention, head, size }: Shown): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = useSignalOf({ attention, head: typeof head === "number" && head < attention.heads ? head : ("mean" as const), size });
  useSignalEffect(() => draw(canvas.current, shown.value));
  return <canvas class="heads-thumbnail" ref={canvas} role="img" aria-label={headSentence(attention, shown.value.head)} />;
}

function draw(canvas: HTMLCanvasElement | null, { attention, head, size }: Shown): void {
  const found = picture(attention, head);
  if (!canvas) return;
  const pixels = Math.round(size * (window.devicePixelRatio || 1));
  [canvas.width, canvas.height] = [pixels, pixels];
  [canvas.style.width, canvas.style.height] = [`${size}px`, `${size}px`];
  const context = canvas.getContext("2d");
  if (found && context) paint(context, found, 0, 0, pixels, pixels);
}
