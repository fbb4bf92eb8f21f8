// Which keys a query may see.

import type { Attention } from "./payload";
import { tensor } from "./tensors";

const masks = new WeakMap<Attention, Uint8Array>();

/** Unpack the mask of an attention, so that what follows can ask it at once. */
export async function prepareMask(attention: Attention): Promise<void> {
  if (attention.mask !== "given" || !attention.allowed?.data || masks.has(attention)) return;
  masks.set(attention, (await tensor(attention.allowed)) as Uint8Array);
}

/** The mask as it was given, once the matrix has been unpacked. */
export function maskOf(attention: Attention): Uint8Array | null {
  return masks.get(attention) ?? null;
}

/** A causal query sees the keys up to its own place, counted from the end where there are more keys than queries. */
export function causalOffset(attention: Attention): number {
  return Math.max(0, attention.keys - attention.queries);
}

/** Whether a query may see a key. */
export function allowed(attention: Attention, query: number, key: number): boolean {
  if (attention.mask === "causal") return key <= query + causalOffset(attention);
  return attention.mask === "full" || maskOf(attention)?.[query * attention.keys + key] !== 0;
}
