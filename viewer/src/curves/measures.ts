// The numbers of the curves: what each key received and how each query looked, for one head or for the mean of all.

import type { Attention, Ref, Statistics } from "../payload";
import type { Head } from "../store";
import { tensor } from "../tensors";

/** `received` has one number for each key, the others one for each query. NaN stands where nothing was recorded. */
export interface Measures {
  /** Times its even share. */
  received: Float32Array;
  largest: Float32Array;
  effective: Float32Array;
  focus: Float32Array;
  spread: Float32Array;
  sink: Float32Array;
}

export type Measure = keyof Measures;

/** The same numbers for every head, row by row. */
export interface Tables extends Measures {
  heads: number;
}

const loaded = new WeakMap<Attention, Promise<Tables>>();

/** The statistics of an attention; they were measured in Python from exact weights. */
export function tablesOf(attention: Attention): Promise<Tables> {
  let found = loaded.get(attention);
  if (!found) {
    found = load(attention);
    loaded.set(attention, found);
  }
  return found;
}

async function load(attention: Attention): Promise<Tables> {
  const { statistics, heads } = attention;
  const byQuery = (name: keyof Statistics) => queries(attention, statistics[name]);
  const [received, largest, effective, focus, spread, sink] = await Promise.all([
    tensor(statistics.received) as Promise<Float32Array>,
    byQuery("largest"),
    byQuery("effective"),
    byQuery("focus"),
    byQuery("spread"),
    byQuery("sink"),
  ]);
  // a query that reads nothing stands nowhere; Python writes 0 for it
  const standing = (values: Float32Array) => values.map((value, at) => (effective[at] === 0 ? NaN : value));
  return { heads, received, largest, effective, focus: standing(focus), spread: standing(spread), sink };
}

/** Where only some queries were recorded, the others have no number. */
async function queries(attention: Attention, ref: Ref): Promise<Float32Array> {
  const numbers = (await tensor(ref)) as Float32Array;
  const { heads, rows } = attention;
  if (!rows || numbers.length !== heads * rows.length) return numbers;
  const all = new Float32Array(heads * attention.queries).fill(NaN);
  for (let head = 0; head < heads; head += 1) {
    rows.forEach((query, at) => (all[head * attention.queries + query] = numbers[head * rows.length + at]!));
  }
  return all;
}

/** One head's numbers, or those of the mean. */
export function ofHead(tables: Tables, head: Head): Measures {
  if (head === "mean") return ofMean(tables);
  const row = (all: Float32Array) => all.subarray((head * all.length) / tables.heads, ((head + 1) * all.length) / tables.heads);
  const { received, largest, effective, focus, spread, sink } = tables;
  return {
    received: row(received),
    largest: row(largest),
    effective: row(effective),
    focus: row(focus),
    spread: row(spread),
    sink: row(sink),
  };
}

/**
 * What is received, the focus and the sink of the mean matrix are the means of the heads'; its spread holds theirs and how far
 * apart they stand, so it is right as well. The largest weight and the effective keys are the heads' mean, which is not what
 * the mean matrix has: a mean of sharp heads looks diffuse though none of them is.
 */
function ofMean(tables: Tables): Measures {
  const focus = average(tables.focus, tables.heads);
  const moment = tables.spread.map((spread, at) => spread ** 2 + tables.focus[at]! ** 2);
  const spread = average(moment, tables.heads).map((square, at) => Math.sqrt(Math.max(0, square - focus[at]! ** 2)));
  return {
    received: average(tables.received, tables.heads),
    largest: average(tables.largest, tables.heads),
    effective: average(tables.effective, tables.heads),
    focus,
    spread,
    sink: average(tables.sink, tables.heads),
  };
}

function average(all: Float32Array, heads: number): Float32Array {
  const length = all.length / heads;
  const mean = new Float32Array(length);
  for (let place = 0; place < length; place += 1) {
    let [sum, known] = [0, 0];
    for (let head = 0; head < heads; head += 1) {
      const value = all[head * length + place]!;
      if (Number.isNaN(value)) continue;
      sum += value;
      known += 1;
    }
    mean[place] = sum / known;
  }
  return mean;
}
