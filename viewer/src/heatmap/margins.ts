// The two curves at the edges of the matrix: what each key receives, and how sharp each query is.

import type { Attention, Ref } from "../payload";
import type { Head } from "../store";
import { tensor } from "../tensors";
import { type Edge, pitch } from "./axis";

export interface Margins {
  /** By key, as a multiple of the even share. */
  received: Float32Array;
  /** By query, the largest weight. */
  largest: Float32Array;
}

/** The curves of a head, or the mean of all heads' curves. */
export async function marginsOf(attention: Attention, head: Head): Promise<Margins> {
  const [received, largest] = await Promise.all([curve(attention.statistics.received, head), curve(attention.statistics.largest, head)]);
  return { received, largest };
}

async function curve(ref: Ref, head: Head): Promise<Float32Array> {
  const all = await tensor(ref);
  const length = ref.shape.at(-1)!;
  const heads = all.length / length;
  if (head !== "mean" && head < heads) return all.subarray(head * length, (head + 1) * length) as Float32Array;
  const mean = new Float32Array(length);
  for (let at = 0; at < all.length; at += 1) mean[at % length]! += (Number.isFinite(all[at]) ? all[at]! : 0) / heads;
  return mean;
}

/** The largest value under each pixel along an edge: a peak of one place is never lost. */
export function perPixel(values: Float32Array, edge: Edge): Float32Array {
  const found = new Float32Array(Math.max(1, Math.round(edge.pixels)));
  const cells = 1 / pitch(edge);
  for (let pixel = 0; pixel < found.length; pixel += 1) {
    const first = Math.floor(edge.first + pixel * cells);
    const end = Math.min(values.length, Math.max(first + 1, Math.ceil(edge.first + (pixel + 1) * cells - 1e-9)));
    for (let place = first; place < end; place += 1) if (values[place]! > found[pixel]!) found[pixel] = values[place]!;
  }
  return found;
}

export interface Bars {
  edge: Edge;
  values: Float32Array;
  /** The value that takes all of the room across the edge, and that room in pixels. */
  most: number;
  room: number;
  colour: string;
  /** A dashed line at a value that means something. */
  mark: { at: number; colour: string } | null;
}

/** Bars along an edge. */
export function drawBars(pen: CanvasRenderingContext2D, { edge, values, most, room, colour, mark }: Bars): void {
  const bars = perPixel(values, edge);
  pen.fillStyle = colour;
  bars.forEach((value, pixel) => {
    const length = Math.max(value > 0 ? 0.5 : 0, Math.min(1, value / most) * (room - 4));
    if (edge.side === "left") pen.fillRect(2, pixel, length, 1);
    else pen.fillRect(pixel, 2, 1, length);
  });
  if (mark === null) return;
  const at = Math.round(2 + (mark.at / most) * (room - 4)) + 0.5;
  pen.strokeStyle = mark.colour;
  pen.lineWidth = 1;
  pen.setLineDash([3, 3]);
  pen.beginPath();
  if (edge.side === "left") pen.moveTo(at, 0), pen.lineTo(at, edge.pixels);
  else pen.moveTo(0, at), pen.lineTo(edge.pixels, at);
  pen.stroke();
  pen.setLineDash([]);
}
