// Colours of cells: 256 of them from Python, so that page and figures are painted from the same bytes.

import type { Payload } from "./payload";
import type { Scale } from "./store";

/** Weights below this part of the largest are the darkest colour of the logarithmic scale. */
export const LOWEST = 1e-5;
/** The palette for values that go both ways. */
export const TWO_SIDED = "balance";

/** Eight colours for categories, which say nothing of more and less. */
const CATEGORIES = "okabe_ito";

const unpacked = new WeakMap<Payload, Map<string, Uint8Array>>();

/** Red, green, blue, 256 times. */
export function table(payload: Payload, name: string): Uint8Array {
  const known = unpacked.get(payload) ?? new Map<string, Uint8Array>();
  unpacked.set(payload, known);
  let found = known.get(name);
  if (!found) {
    const packed = payload.palettes[name] ?? payload.palettes["cividis"] ?? Object.values(payload.palettes)[0];
    if (!packed) throw new Error(`the page has no palette ${name}`);
    found = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    known.set(name, found);
  }
  return found;
}

/** The palettes for weights; the two-sided one is taken where it is needed and never chosen, nor are categories. */
export function sequential(payload: Payload): string[] {
  return Object.keys(payload.palettes).filter((name) => name !== TWO_SIDED && name !== CATEGORIES);
}

/**
 * Which of 256 colours a byte has. Bytes are roots, so the square-root scale is the plain one. `factor` is the weight that 255
 * stands for over the weight that has the last colour: what lies beyond has the last colour as well.
 */
export function place(byte: number, scale: Scale, signed: boolean, factor = 1): number {
  const stretch = Math.sqrt(factor);
  if (!signed) return Math.round(255 * rescaled(Math.min(1, (byte / 255) * stretch), scale));
  const share = ((byte - 128) / 127) * stretch;
  return 128 + Math.round(127 * Math.sign(share) * rescaled(Math.min(1, Math.abs(share)), scale));
}

/** The weight with the middle colour of the scale, where `upper` has the last. */
export function middle(scale: Scale, upper: number): number {
  return upper * { linear: 0.5, sqrt: 0.25, log: Math.sqrt(LOWEST) }[scale];
}

function rescaled(root: number, scale: Scale): number {
  if (scale === "sqrt") return root;
  const weight = root * root;
  if (scale === "linear") return weight;
  return weight <= LOWEST ? 0 : 1 - Math.log(weight) / Math.log(LOWEST);
}

const small = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** The pixel of each byte, alpha included, in the order in which this machine keeps the bytes of a number. */
export function pixels(colours: Uint8Array, scale: Scale, signed: boolean, factor = 1): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    const at = 3 * place(byte, scale, signed, factor);
    const [red, green, blue] = [colours[at]!, colours[at + 1]!, colours[at + 2]!];
    return (small ? (255 << 24) | (blue << 16) | (green << 8) | red : (red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
  });
}

/** A colour of the table as CSS. */
export function css(colours: Uint8Array, at: number): string {
  return `rgb(${colours[3 * at]}, ${colours[3 * at + 1]}, ${colours[3 * at + 2]})`;
}
