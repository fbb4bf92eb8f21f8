// The pictures of heads that have been unpacked; what is painted asks here and is told when more have come.

import { computed, signal } from "@preact/signals";
import { pixels, table, TWO_SIDED } from "../palette";
import type { Attention, Ref } from "../payload";
import { range } from "../range";
import { frame, layers, palette, payload, run, scale, transposed, type Head } from "../store";
import { tensor } from "../tensors";
import { flip, peak, pick, resize, sourceOf, withMean, type Picture, type Pictures } from "./picture";

const unpacked = new Map<string, Pictures | null>();
/** How many have come so far: read it to be called again when there are more. */
const come = signal(0);

/** The colour of each byte as a pixel, as the heat map has it. */
export const shades = computed(() => pixels(table(payload.value, palette.value), scale.value, false, stretch.value));
const signedShades = computed(() => pixels(table(payload.value, TWO_SIDED), scale.value, true, stretch.value));

/** The largest weight of all heads in sight, as a share of the scale: the pictures of heads share one range of colours. */
const most = computed(() => {
  const found = layers.value.flatMap((layer) => [...Array(layer.heads).keys()].map((head) => picture(layer, head))).filter((each) => each !== null);
  return Math.max(0, ...found.map(peaked));
});

/** How far the colours are stretched: as in the heat map, to 1, to the largest weight, or to a number. */
const stretch = computed(() => {
  const chosen = range.value;
  if (chosen === "one") return 1;
  return 1 / (typeof chosen === "number" ? chosen : most.value || 1);
});

const peaksOf = new WeakMap<Picture, number>();

function peaked(shown: Picture): number {
  const found = peaksOf.get(shown) ?? peak(shown, 1);
  peaksOf.set(shown, found);
  return found;
}

/** The picture of a head as it is shown now; null while it is unpacked, or where there is none. */
export function picture(attention: Attention, head: Head): Picture | null {
  const filmed = frame.value === null ? undefined : run.value.training[frame.value]?.weights[attention.id];
  const source = sourceOf(attention, filmed);
  if (!source?.data) return null;
  if (!unpacked.has(source.data)) void unpack(source, filmed !== undefined, attention.signed ?? false);
  void come.value;
  const all = unpacked.get(source.data);
  return all ? turned(all, head, transposed.value) : null;
}

const picked = new WeakMap<Pictures, Map<string, Picture>>();

/** The same picture is the same object at every call, so that what is made of it can be kept. */
function turned(all: Pictures, head: Head, across: boolean): Picture {
  const known = kept(picked, all);
  const name = `${head} ${across}`;
  const found = known.get(name) ?? (across ? flip(pick(all, head)) : pick(all, head));
  known.set(name, found);
  return found;
}

const resized = new WeakMap<Picture, Map<string, Picture>>();

/** A picture in so many pixels, made once: a click repaints a hundred of them. */
function sized(shown: Picture, rows: number, columns: number): Picture {
  const known = kept(resized, shown);
  const name = `${rows} ${columns}`;
  const found = known.get(name) ?? resize(shown, rows, columns);
  known.set(name, found);
  return found;
}

function kept<Key extends object>(all: WeakMap<Key, Map<string, Picture>>, of: Key): Map<string, Picture> {
  const found = all.get(of) ?? new Map<string, Picture>();
  all.set(of, found);
  return found;
}

/** Whether there is anything to wait for. */
export function hasPicture(attention: Attention): boolean {
  return Boolean(attention.thumbnails?.data);
}

async function unpack(source: Ref, film: boolean, signed: boolean): Promise<void> {
  unpacked.set(source.data, null);
  const bytes = (await tensor(source)) as Uint8Array;
  const [count = 0, rows = 0, columns = 0] = source.shape;
  unpacked.set(source.data, film ? withMean(bytes, count, rows, columns, signed) : { bytes, rows, columns, count, signed });
  come.value += 1;
}

/** Paint a picture over a rectangle of a canvas, in the canvas's own pixels. */
export function paint(context: CanvasRenderingContext2D, shown: Picture, left: number, top: number, width: number, height: number): void {
  const image = context.createImageData(width, height);
  const colours = (shown.signed ? signedShades : shades).value;
  const target = new Uint32Array(image.data.buffer);
  const { bytes } = sized(shown, height, width);
  for (let at = 0; at < bytes.length; at += 1) target[at] = colours[bytes[at]!]!;
  context.putImageData(image, left, top);
}
