// Tensors that are there without being packed, and numbers that look like chance.

import type { Kind, Ref } from "../payload";
import { type Numbers, provide } from "../tensors";

let count = 0;

/** A tensor that is there without being packed. */
export function put(numbers: Numbers, shape: number[], dtype: Kind): Ref {
  const data = `invented${count++}`;
  provide(data, numbers);
  return { data, dtype, shape };
}

/** The numbers of a small generator, the same at every call. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}
