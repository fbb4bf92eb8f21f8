// Which places of one axis stand beside which of another, so that two runs can be compared row by row.

import { labels } from "./labels";
import type { Axis, AudioAxis, SeriesAxis } from "./payload";

/** Place `left[i]` of the first axis belongs to place `right[i]` of the second; both only ever grow. */
export interface Alignment {
  left: number[];
  right: number[];
}

/** Sound and series are matched by time, pictures by patch, everything else by the longest run of equal labels. */
export function align(a: Axis, b: Axis): Alignment {
  if (a.kind !== b.kind) return { left: [], right: [] };
  if (a.kind === "audio" || a.kind === "series") return byTime(a, b as AudioAxis | SeriesAxis);
  if (a.kind === "image" && b.kind === "image" && !sameGrid(a.grid, b.grid)) return common(a.prefix, b.prefix);
  return common(labels(a), labels(b));
}

/** The places of an axis that have no partner. */
export function alone(length: number, matched: number[]): number[] {
  const known = new Set(matched);
  return Array.from({ length }, (_, place) => place).filter((place) => !known.has(place));
}

function sameGrid(a: [number, number], b: [number, number]): boolean {
  return a[0] === b[0] && a[1] === b[1];
}

/** Pairs that are each other's nearest in time, and no further apart than half of the longer step. */
function byTime(a: AudioAxis | SeriesAxis, b: AudioAxis | SeriesAxis): Alignment {
  const [first, second] = [moments(a), moments(b)];
  const reach = Math.max(spacing(first), spacing(second)) / 2;
  const pairs: Alignment = { left: [], right: [] };
  const [there, back] = [nearest(first, second), nearest(second, first)];
  there.forEach((partner, place) => {
    if (back[partner] !== place || Math.abs(first[place]! - second[partner]!) > reach) return;
    pairs.left.push(place);
    pairs.right.push(partner);
  });
  return pairs;
}

function moments(axis: AudioAxis | SeriesAxis): number[] {
  if (axis.kind === "series") return axis.times;
  return Array.from({ length: axis.length }, (_, place) => place * axis.seconds_per_step);
}

/** The usual step: the median, so that one gap does not stand for all. */
function spacing(times: number[]): number {
  const steps = times.slice(1).map((time, place) => time - times[place]!);
  return steps.sort((left, right) => left - right)[steps.length >> 1] ?? 0;
}

/** For each time its nearest among others, the later of two that are equally near; both lists in order. */
function nearest(times: number[], others: number[]): number[] {
  let at = 0;
  return times.map((time) => {
    while (at + 1 < others.length && Math.abs(others[at + 1]! - time) <= Math.abs(others[at]! - time)) at += 1;
    return others.length > 0 ? at : -1;
  });
}

/** The longest common subsequence of two lists of labels, exactly. */
function common(a: string[], b: string[]): Alignment {
  const pairs: Alignment = { left: [], right: [] };
  const numbers = new Map<string, number>();
  const [first, second] = [numbered(a, numbers), numbered(b, numbers)];
  collect(first, 0, first.length, second, 0, second.length, pairs);
  return pairs;
}

function numbered(names: string[], numbers: Map<string, number>): Int32Array {
  return Int32Array.from(names, (name) => {
    if (!numbers.has(name)) numbers.set(name, numbers.size);
    return numbers.get(name)!;
  });
}

/**
 * Hirschberg's division: time (rows x columns), memory of one row, so that 4,096 tokens against 4,096 need no large table.
 * Equal beginnings and ends are taken off first, since two runs over one sentence are mostly equal.
 */
function collect(a: Int32Array, a0: number, a1: number, b: Int32Array, b0: number, b1: number, pairs: Alignment): void {
  while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) {
    pairs.left.push(a0++);
    pairs.right.push(b0++);
  }
  let tail = 0;
  while (a0 < a1 - tail && b0 < b1 - tail && a[a1 - tail - 1] === b[b1 - tail - 1]) tail += 1;
  divide(a, a0, a1 - tail, b, b0, b1 - tail, pairs);
  for (let place = tail; place > 0; place -= 1) {
    pairs.left.push(a1 - place);
    pairs.right.push(b1 - place);
  }
}

function divide(a: Int32Array, a0: number, a1: number, b: Int32Array, b0: number, b1: number, pairs: Alignment): void {
  if (a0 >= a1 || b0 >= b1) return;
  if (a1 - a0 === 1) {
    const found = b.subarray(b0, b1).indexOf(a[a0]!);
    if (found >= 0) {
      pairs.left.push(a0);
      pairs.right.push(b0 + found);
    }
    return;
  }
  const middle = (a0 + a1) >> 1;
  const upper = lengths(a.subarray(a0, middle), b.subarray(b0, b1));
  const lower = lengths(a.slice(middle, a1).reverse(), b.slice(b0, b1).reverse());
  let cut = 0;
  for (let at = 1; at <= b1 - b0; at += 1) {
    if (upper[at]! + lower[b1 - b0 - at]! > upper[cut]! + lower[b1 - b0 - cut]!) cut = at;
  }
  collect(a, a0, middle, b, b0, b0 + cut, pairs);
  collect(a, middle, a1, b, b0 + cut, b1, pairs);
}

/** How long the common subsequence of all of `a` with each beginning of `b` is. */
function lengths(a: Int32Array, b: Int32Array): Uint32Array {
  const row = new Uint32Array(b.length + 1);
  for (const wanted of a) {
    let diagonal = 0;
    for (let at = 1; at <= b.length; at += 1) {
      const above = row[at]!;
      row[at] = b[at - 1] === wanted ? diagonal + 1 : Math.max(above, row[at - 1]!);
      diagonal = above;
    }
  }
  return row;
}
